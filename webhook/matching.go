package webhook

import (
	"slices"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// loadedWebhook is a webhook with its opened key, selection and receiver. It is immutable; a change
// of the webhook creates another one.
type loadedWebhook struct {
	webhookRow
	suspended bool // nothing is sent, because the webhook is paused or its key cannot be opened
	key       []byte
	selection *identity.Selection
	receiver  *receiver // shared by the hooks of a webhook until its URL changes or it is retried
}

// webhookSnapshot is a snapshot of the webhooks of all accounts. It is immutable.
type webhookSnapshot struct {
	byID        map[string]*loadedWebhook
	byAccount   map[string][]*loadedWebhook // by account whose messages they select
	bySubtree   map[string][]*loadedWebhook // by account, of which and below which they select messages
	pausedCount int

	replaced chan struct{} // closed when a newer snapshot exists
}

func newWebhookSnapshot(webhooks []*loadedWebhook) *webhookSnapshot {
	h := &webhookSnapshot{byID: make(map[string]*loadedWebhook, len(webhooks)),
		byAccount: map[string][]*loadedWebhook{}, bySubtree: map[string][]*loadedWebhook{},
		replaced: make(chan struct{})}
	for _, w := range webhooks {
		h.byID[w.ID] = w
		if w.Status == StatusPaused {
			h.pausedCount++
		}

		ids, below := w.selection.Accounts()
		index := h.byAccount
		if below {
			index = h.bySubtree
		}

		for _, id := range ids {
			index[id] = append(index[id], w)
		}
	}

	return h
}

// match calls each for the webhooks that select a message.
func (h *webhookSnapshot) match(m *filterHeaders, tree *identity.Tree, each func(*loadedWebhook)) {
	visit := func(candidates []*loadedWebhook) {
		for _, w := range candidates {
			if w.admits(m, tree) {
				each(w)
			}
		}
	}

	visit(h.byAccount[m.account])
	if len(h.bySubtree) == 0 {
		return
	}

	var path [identity.MaxDepth]string
	for _, ancestor := range tree.AppendPath(path[:0], m.account) {
		visit(h.bySubtree[ancestor])
	}
}

// selects reports whether the webhook's filters select a message, its account included.
func (h *loadedWebhook) selects(m *filterHeaders, tree *identity.Tree) bool {
	ids, below := h.selection.Accounts()
	return h.admits(m, tree) &&
		slices.ContainsFunc(ids,
			func(id string) bool { return id == m.account || below && tree.Contains(id, m.account) })
}

// admits reports whether the filters other than that of the account select a message, and the webhook's account
// still exists: the registry follows the accounts a moment later than tree.
func (h *loadedWebhook) admits(m *filterHeaders, tree *identity.Tree) bool {
	return h.selection.Admits(m.typeBits, m.name, m.agent, m.queue, m.call) && tree.Contains(h.AccountID, h.AccountID)
}

// filterHeaders are the fields of a message that filters match.
type filterHeaders struct {
	account            string
	typeBits           event.TypeSet
	name               event.NameSet
	agent, queue, call string
}

// readFilterHeaders reads the headers of a record of cc.evt.
func readFilterHeaders(r *kafka.Record) (m filterHeaders) {
	var typ, format, name []byte
	for i := range r.Headers {
		switch h := &r.Headers[i]; h.Key {
		case event.HeaderType:
			typ = h.Value
		case event.HeaderAccount:
			m.account = string(h.Value)
		case event.HeaderOriginalFormat:
			format = h.Value
		case event.HeaderName:
			name = h.Value
		case event.HeaderAgent:
			m.agent = string(h.Value)
		case event.HeaderQueue:
			m.queue = string(h.Value)
		case event.HeaderCall:
			m.call = string(h.Value)
		}
	}

	m.typeBits, m.name = event.TypeClassOf(event.Type(typ), string(format), event.Name(name)), event.NameBit(name)
	return m
}
