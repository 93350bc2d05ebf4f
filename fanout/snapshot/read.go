package snapshot

import (
	"net/url"
	"strings"

	"trunkline/internal/jsonscan"
)

// update is the change that one message makes: to at most one agent and one
// call.
type update struct {
	agent agentUpdate
	call  callUpdate
}

// agentUpdate is a change of an agent; "" leaves a field unchanged.
type agentUpdate struct {
	id            string
	state, status string
	loggedOut     bool // has logged out
	keepsLogout   bool // does not log in an agent that has logged out
}

// callUpdate is a change of a call; "" leaves a field unchanged.
type callUpdate struct {
	id, queue, agent string
	state            CallState
	reopens          bool   // also when it has ended before
	ended            bool   // has ended,
	endedBy          string // for this agent only; "": for everybody
}

// apply sets the fields of a transition.
func (c *callUpdate) apply(s transition) { c.state, c.reopens, c.ended = s.state, s.reopens, s.ended }

// read decodes the update of a message. Malformed data gives an empty update.
func read(m *Message) update {
	s := readData(m)
	if len(m.Queue) <= maxText {
		s.call.queue = m.Queue
	}
	return s
}

func readData(m *Message) update {
	switch {
	case m.Format == "freeswitch.callcenter", m.Format == "freeswitch.event":
		return readFreeSWITCH(m.Data)
	case strings.HasPrefix(m.Format, "kazoo."):
		return readKazoo(m.Data)
	case m.Format == "svc.cc", m.Format == "generic":
		return readOwn(m)
	}
	return update{}
}

// maxText bounds ids and words in bytes: longer ones are ignored.
const maxText = 256

func text(v jsonscan.Value) string {
	if len(v) > maxText {
		return ""
	}
	t, _ := v.Text()
	return string(t)
}

// decoded is text of a FreeSWITCH value, which may be URL-encoded.
func decoded(v jsonscan.Value) string {
	s := text(v)
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return strings.ToValidUTF8(plain, "\uFFFD")
	}
	return s
}

// within reads the members in keys of a nested object; where v is no object
// there are none.
func within(v jsonscan.Value, keys jsonscan.Keys, into []jsonscan.Value) {
	if v.Kind() == jsonscan.Object {
		_ = keys.Scan(v, into) // v is part of a checked object
	}
}

// bothSpellings is Dash-Case and snake_case of the same keys.
func bothSpellings(names ...string) jsonscan.Keys {
	keys := jsonscan.KeysOf(names...)
	for i, name := range names {
		keys[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = i
	}
	return keys
}
