package asterisk

import (
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

const (
	maxLearned    = 100_000 // ids in one generation
	generationAge = time.Hour
)

// tenants finds the accounts of events, and caches those of calls and queue members.
type tenants struct {
	cfg      *feed.Config
	accounts feed.Accounts

	mu      sync.Mutex
	recent  map[string]tenant // by Uniqueid, Linkedid, and interface of a member
	older   map[string]tenant // the previous generation
	rotated time.Time
}

// tenant is the account of an id.
type tenant struct {
	account string
	sure    bool // found by a variable, an account code or a queue, not by a context
}

func newTenants(cfg *feed.Config, accounts feed.Accounts) *tenants {
	return &tenants{cfg: cfg, accounts: accounts, recent: map[string]tenant{}, older: map[string]tenant{}, rotated: time.Now()}
}

// find returns the account of an event, "" if it is unknown, and the names that were looked up. It
// caches the account for the event's calls and queue member.
func (t *tenants) find(p *ami.Message) (account string, names []string) {
	if t.cfg.Account != "" {
		return t.accounts.Account(), nil
	}
	sure, rest := t.names(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	found := tenant{t.accounts.Account(sure...), true}
	ids := calls(p)
	for _, id := range ids {
		if found.account == "" {
			found = t.lookup(id)
		}
	}
	if found.account == "" {
		found = tenant{t.accounts.Account(rest...), false}
	}
	if found.account == "" {
		found = t.lookup(deviceOf(p))
	}
	if found.account == "" {
		return "", append(sure, rest...)
	}
	for _, id := range ids {
		t.learn(id, found)
	}
	if queue := p.Get("Queue"); queue != "" {
		t.learn(member(p), found)
	}
	return found.account, nil
}

// names returns the names in an event that may map to an account. sure has those that identify the
// call's tenant; rest has those that may also occur in events of another tenant's call.
func (t *tenants) names(p *ami.Message) (sure, rest []string) {
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	if t.cfg.AccountVariable != "" {
		add(&sure, variable(p, t.cfg.AccountVariable)...)
	}
	if t.cfg.UseAccountcode {
		add(&sure, value(p, "AccountCode"), value(p, "DestAccountCode"))
	}
	add(&sure, value(p, "Queue"))
	add(&rest, value(p, "Context"), value(p, "DestContext"), value(p, "DestinationContext"), value(p, "Conference"))
	for _, device := range []string{member(p), deviceOf(p), value(p, "AOR")} {
		add(&rest, device)
		if _, domain, ok := strings.Cut(device, "@"); ok {
			domain, _, _ = strings.Cut(domain, "/")
			add(&rest, domain)
		}
	}
	return sure, rest
}

// variable returns the values of a channel variable in ChanVariable, DestChanVariable or its VarSet
// event.
func variable(p *ami.Message, name string) (values []string) {
	if p.Name() == "VarSet" && strings.TrimLeft(p.Get("Variable"), "_") == name {
		values = append(values, p.Get("Value"))
	}
	for _, f := range p.Fields {
		if strings.Contains(f.Key, "ChanVariable") {
			if key, v, ok := strings.Cut(f.Value, "="); ok && key == name {
				values = append(values, v)
			}
		}
	}
	if v := value(p, name); v != "" && p.Name() == "Cdr" { // mapped in cdr_manager.conf
		values = append(values, v)
	}
	return values
}

// calls returns the ids by which an event's account may be cached, those of its own leg before those of
// the whole call.
func calls(p *ami.Message) (ids []string) {
	for _, key := range [...]string{"Uniqueid", "DestUniqueid", "Linkedid", "DestLinkedid",
		"TransfereeUniqueid", "TransfereeLinkedid", "TransfererUniqueid", "TransfererLinkedid", "OrigTransfererUniqueid", "OrigTransfererLinkedid"} {
		if id := value(p, key); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// member returns the interface of an event's queue member.
func member(p *ami.Message) string {
	if location := value(p, "Location"); location != "" {
		return location
	}
	return value(p, "Interface")
}

// deviceOf returns the device of an event.
func deviceOf(p *ami.Message) string {
	switch p.Name() {
	case "ContactStatus":
		return value(p, "EndpointName")
	case "PeerStatus":
		return value(p, "Peer")
	case "ContactList":
		return value(p, "Endpoint")
	}
	return ""
}

// lookup returns the cached tenant of an id. The caller holds mu.
func (t *tenants) lookup(id string) tenant {
	if id == "" {
		return tenant{}
	}
	for _, name := range [...]string{id, "PJSIP/" + id} {
		if found, ok := t.recent[name]; ok {
			return found
		}
		if found, ok := t.older[name]; ok {
			t.recent[name] = found
			return found
		}
	}
	return tenant{}
}

// learn caches the account of an id, unless the cache has one that is sure and this one is not. The
// caller holds mu.
func (t *tenants) learn(id string, found tenant) {
	if id == "" {
		return
	}
	if before := t.lookup(id); before == found || before.sure && !found.sure {
		return
	}
	if now := time.Now(); len(t.recent) >= maxLearned || now.Sub(t.rotated) >= generationAge {
		t.older, t.recent, t.rotated = t.recent, map[string]tenant{}, now
	}
	t.recent[id] = found
}
