package state

import (
	"time"

	"trunkline/event"
)

// View holds the state of one partition as recorded on cc.state. It is for readers of
// the topic, which must pass all records to it in order from the beginning. It is not
// safe for concurrent use. Its entries are immutable, so they may be retained.
type View struct {
	// KeepNumbers makes the view keep identities' numbers and calls' histories too, which
	// only normalizers need.
	KeepNumbers bool

	accounts       map[string]map[entityKey]Value
	changesOfCalls map[string]int64 // by account: how often a call was changed, see CallChanges
	sizes          map[Kind]int
	numbers        map[Key]*SeenNumbers
	folded         *Position // see Position; nil: none
	stagedRecords  []Record  // of a batch whose position has not been read yet
}

// entityKey is a Key within its account.
type entityKey struct {
	kind Kind
	id   string
}

// NewView returns the view of an empty topic.
func NewView() *View {
	return &View{
		accounts: map[string]map[entityKey]Value{}, changesOfCalls: map[string]int64{}, sizes: map[Kind]int{},
		numbers: map[Key]*SeenNumbers{},
	}
}

// Apply applies the next record. Entries become visible with the position of their
// batch, which is its last record: a view is always the fold up to Position. Apply
// ignores a record whose event id is below that of the key's last one: a normalizer
// that had already been replaced wrote it.
func (v *View) Apply(r Record) {
	if r.Position == nil {
		if r.Entry != nil && !v.KeepNumbers {
			r.Entry.History = nil
		}
		if v.KeepNumbers || r.Key().Kind != Identity {
			v.stagedRecords = append(v.stagedRecords, r)
		}

		return
	}

	for i := range v.stagedRecords {
		v.put(&v.stagedRecords[i])
	}

	clear(v.stagedRecords)
	v.stagedRecords = v.stagedRecords[:0]
	if v.folded == nil || !r.Position.Behind(v.folded) {
		v.folded = r.Position
	}
}

// Position returns the position up to which the view is the fold of cc.evt; nil if the
// topic has none.
func (v *View) Position() *Position { return v.folded }

// Find returns an entry, or nil.
func (v *View) Find(k Key) *Entry { return entryOf(v.accounts[k.Account][entityKey{k.Kind, k.ID}]) }

// Each calls give for the unexpired entries (at now) of admitted accounts, in no
// particular order. They include entries that are not Live: if an agent or call is in
// several partitions, the entry with the highest EventID decides, even if it has ended
// there. Of a call that has ended they have only the key, the event id and the state, and
// are valid until give returns: there are many times as many of them as of others.
func (v *View) Each(admits func(account string) bool, now time.Time, give func(*Entry)) {
	at := event.ID(now.UnixNano())
	var ended Entry
	for account, entries := range v.accounts {
		if !admits(account) {
			continue
		}

		for _, value := range entries {
			if expiryOf(value) <= at {
				continue
			}
			if e, ok := value.(*Entry); ok {
				give(e)
				continue
			}

			key := value.Key()
			ended = Entry{AccountID: key.Account, Kind: key.Kind, ID: key.ID, EventID: value.lastEvent()}
			ended.State = event.Ended
			give(&ended)
		}
	}
}

// All calls give for all entries, in no particular order.
func (v *View) All(give func(*Entry)) {
	for _, entries := range v.accounts {
		for _, value := range entries {
			give(entryOf(value))
		}
	}
}

// Values calls give for all entries and numbers, in no particular order.
func (v *View) Values(give func(Value)) {
	for _, entries := range v.accounts {
		for _, value := range entries {
			give(value)
		}
	}
	for _, n := range v.numbers {
		give(n)
	}
}

// Size returns the number of entries of a kind.
func (v *View) Size(k Kind) int { return v.sizes[k] }

// CallChanges returns how often a call of the account was changed.
func (v *View) CallChanges(account string) int64 { return v.changesOfCalls[account] }

func (v *View) put(r *Record) {
	k := r.Key()
	if k.Kind == Identity {
		v.setNumbers(k, r.Numbers, r.EventID)
	} else {
		v.set(k, r.Entry, r.EventID)
	}
}

// setNumbers sets or, with nil, deletes the numbers of a key, unless a later event has
// changed them.
func (v *View) setNumbers(k Key, n *SeenNumbers, id event.ID) {
	before := v.numbers[k]
	switch {
	case before != nil && id != 0 && id < before.EventID:
	case n == nil:
		delete(v.numbers, k)
	default:
		v.numbers[k] = n
	}
}

// set sets or, with nil, deletes the entry of a key, unless a later event has changed
// it.
func (v *View) set(k Key, e *Entry, id event.ID) {
	entries, short := v.accounts[k.Account], entityKey{k.Kind, k.ID}
	before := entries[short]
	if before != nil && id != 0 && id < before.lastEvent() {
		return
	}
	if k.Kind == Call {
		v.changesOfCalls[k.Account]++
	}

	switch {
	case e == nil && before != nil:
		delete(entries, short)
		v.sizes[k.Kind]--
		if len(entries) == 0 {
			delete(v.accounts, k.Account)
		}
	case e != nil:
		if entries == nil {
			entries = map[entityKey]Value{}
			v.accounts[k.Account] = entries
		}
		if before == nil {
			v.sizes[k.Kind]++
		}

		value := e.compact()
		// The id of the value itself: that of e would keep all texts of e in memory.
		entries[entityKey{k.Kind, value.Key().ID}] = value
	}
}
