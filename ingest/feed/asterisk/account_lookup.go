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
	maxCachedIDs  = 100_000 // ids in one generation
	generationAge = time.Hour
)

// accountLookup finds the accounts of events, and caches those of calls and queue members.
type accountLookup struct {
	cfg      *feed.Config
	accounts feed.Accounts

	mu        sync.Mutex
	recent    map[string]cachedAccount // by Uniqueid, Linkedid, and interface of a member
	older     map[string]cachedAccount // the previous generation
	rotatedAt time.Time
}

// cachedAccount is the account of an id.
type cachedAccount struct {
	account string // "": not known
	certain bool   // found by a variable, an account code or a queue, not by a context
}

func newAccountLookup(cfg *feed.Config, accounts feed.Accounts) *accountLookup {
	return &accountLookup{cfg: cfg, accounts: accounts, recent: map[string]cachedAccount{},
		older: map[string]cachedAccount{}, rotatedAt: time.Now()}
}

// find returns the account of an event, "" if it is unknown, and the names that were looked up. It
// caches the account for the event's calls and queue member.
func (l *accountLookup) find(message *ami.Message) (account string, names []string) {
	if l.cfg.Account != "" {
		return l.accounts.Account(), nil
	}

	certain, uncertain := l.names(message)
	l.mu.Lock()
	defer l.mu.Unlock()

	found := cachedAccount{l.accounts.Account(certain...), true}
	ids := callIDs(message)
	for _, id := range ids {
		if found.account == "" {
			found = l.cached(id)
		}
	}

	if found.account == "" {
		found = cachedAccount{l.accounts.Account(uncertain...), false}
	}
	if found.account == "" {
		found = l.cached(deviceID(message))
	}
	if found.account == "" {
		return "", append(certain, uncertain...)
	}

	// Later events of the call have none of the names.
	for _, id := range ids {
		l.store(id, found)
	}

	queue := message.Get("Queue")
	if queue != "" {
		l.store(memberInterface(message), found)
	}

	return found.account, nil
}

// names returns the names in an event that may map to an account. certain has those that identify the
// call's tenant; uncertain has those that may also occur in events of another tenant's call.
func (l *accountLookup) names(message *ami.Message) (certain, uncertain []string) {
	add := func(list *[]string, names ...string) {
		for _, name := range names {
			if name != "" && !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}

	if l.cfg.AccountVariable != "" {
		add(&certain, variableValues(message, l.cfg.AccountVariable)...)
	}
	if l.cfg.UseAccountcode {
		add(&certain, knownValue(message, "AccountCode"), knownValue(message, "DestAccountCode"))
	}

	add(&certain, knownValue(message, "Queue"))
	add(&uncertain, knownValue(message, "Context"), knownValue(message, "DestContext"),
		knownValue(message, "DestinationContext"),
		knownValue(message, "Conference"))

	for _, device := range []string{memberInterface(message), deviceID(message), knownValue(message, "AOR")} {
		add(&uncertain, device)
		_, domain, ok := strings.Cut(device, "@")
		if ok {
			domain, _, _ = strings.Cut(domain, "/")
			add(&uncertain, domain)
		}
	}

	return certain, uncertain
}

// variableValues returns the values of a channel variable in ChanVariable, DestChanVariable or its VarSet
// event.
func variableValues(message *ami.Message, name string) (values []string) {
	if message.Name() == "VarSet" && strings.TrimLeft(message.Get("Variable"), "_") == name {
		values = append(values, message.Get("Value"))
	}

	for _, f := range message.Fields {
		if strings.Contains(f.Key, "ChanVariable") {
			key, v, ok := strings.Cut(f.Value, "=")
			if ok && key == name {
				values = append(values, v)
			}
		}
	}

	v := knownValue(message, name)
	if v != "" && message.Name() == "Cdr" { // mapped in cdr_manager.conf
		values = append(values, v)
	}

	return values
}

// callIDs returns the ids by which an event's account may be cached, those of its own leg before those of
// the whole call.
func callIDs(message *ami.Message) (ids []string) {
	for _, key := range [...]string{"Uniqueid", "DestUniqueid", "Linkedid", "DestLinkedid",
		"TransfereeUniqueid", "TransfereeLinkedid", "TransfererUniqueid", "TransfererLinkedid",
		"OrigTransfererUniqueid", "OrigTransfererLinkedid"} {
		id := knownValue(message, key)
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// memberInterface returns the interface of an event's queue member.
func memberInterface(message *ami.Message) string {
	location := knownValue(message, "Location")
	if location != "" {
		return location
	}
	return knownValue(message, "Interface")
}

// deviceID returns the device of an event.
func deviceID(message *ami.Message) string {
	switch message.Name() {
	case "ContactStatus":
		return knownValue(message, "EndpointName")
	case "PeerStatus":
		return knownValue(message, "Peer")
	case "ContactList":
		return knownValue(message, "Endpoint")
	}
	return ""
}

// cached returns the cached account of an id. The caller holds mu.
func (l *accountLookup) cached(id string) cachedAccount {
	if id == "" {
		return cachedAccount{}
	}

	for _, name := range [...]string{id, "PJSIP/" + id} {
		if found, ok := l.recent[name]; ok {
			return found
		}
		if found, ok := l.older[name]; ok {
			// What is still asked for stays for one more generation.
			l.recent[name] = found
			return found
		}
	}

	return cachedAccount{}
}

// store caches the account of an id, unless the cache has one that is certain and this one is not. The
// caller holds mu.
func (l *accountLookup) store(id string, found cachedAccount) {
	if id == "" {
		return
	}

	before := l.cached(id)
	if before == found || before.certain && !found.certain {
		return
	}

	now := time.Now()
	if len(l.recent) >= maxCachedIDs || now.Sub(l.rotatedAt) >= generationAge {
		l.older, l.recent, l.rotatedAt = l.recent, map[string]cachedAccount{}, now
	}

	l.recent[id] = found
}
