package stats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unique"

	"trunkline/event"
)

// entryTable holds the entries as of the last event: which are due when, and which have changed.
type entryTable struct {
	intervals intervals
	last      event.ID // last folded event

	entries   map[key]entry
	timers    timers
	calls     callIndex
	counts    [len(kinds)]int
	rowCounts map[rowGroup]int

	dirty map[key]event.ID // entries changed since takeRecords, with the last event that changed them
	bytes int              // estimated size of the changed records

	keepsChanges bool
	changes      []change // in order, since dropChanges; of the last event
}

// change is an entry that is new, has changed or, gone, was removed.
type change struct {
	entry entry
	gone  bool
}

// rowGroup is the rows of a kind that an account has in one interval.
type rowGroup struct {
	account unique.Handle[string]
	start   int64
	kind    kind
}

func (k key) rowGroup() rowGroup { return rowGroup{k.account, k.start, k.kind} }

func newEntryTable(i intervals, keepsChanges bool) *entryTable {
	return &entryTable{intervals: i, entries: map[key]entry{}, calls: callIndex{}, rowCounts: map[rowGroup]int{},
		dirty: map[key]event.ID{}, keepsChanges: keepsChanges}
}

// add adds an entry created by the last event.
func (t *entryTable) add(e entry) {
	t.insert(e)
	t.recordRowChange(e.commonHeader().key, e)
}

// insert adds an entry as it is on the topic: it is no change.
func (t *entryTable) insert(e entry) {
	h := e.commonHeader()
	h.due = t.intervals.dueOf(e)
	t.entries[h.key] = e
	t.timers.add(e)
	t.counts[h.key.kind]++
	t.rowCounts[h.key.rowGroup()]++

	if c, ok := e.(*call); ok {
		t.calls.add(c)
	}
}

// recordChange records that the last event has changed an entry.
func (t *entryTable) recordChange(e entry) {
	e.commonHeader().due = t.intervals.dueOf(e)
	t.timers.fix(e)
	t.recordRowChange(e.commonHeader().key, e)
}

// recordRowChange is recordChange for a row, which is due when it was due before.
func (t *entryTable) recordRowChange(k key, e entry) {
	t.markDirty(k)
	t.keepChange(e, false)
}

func (t *entryTable) markDirty(k key) {
	// A guess: the value is not encoded before it is written.
	const members = 420 // and framing
	if _, ok := t.dirty[k]; !ok {
		t.bytes += members + 2*(len(k.account.Value())+len(k.id.Value()))
	}
	t.dirty[k] = t.last
}

func (t *entryTable) remove(e entry) {
	h := e.commonHeader()
	t.timers.remove(e)
	delete(t.entries, h.key)
	t.counts[h.key.kind]--
	t.rowCounts[h.key.rowGroup()]--
	if t.rowCounts[h.key.rowGroup()] == 0 {
		delete(t.rowCounts, h.key.rowGroup())
	}

	t.markDirty(h.key)
	t.keepChange(e, true)
	if c, ok := e.(*call); ok {
		t.calls.remove(c)
	}
}

func (t *entryTable) keepChange(e entry, gone bool) {
	if t.keepsChanges {
		t.changes = append(t.changes, change{e, gone})
	}
}

// dropChanges empties changes.
func (t *entryTable) dropChanges() {
	clear(t.changes)
	t.changes = t.changes[:0]
}

// sorted returns the entries in the order of their keys.
func (t *entryTable) sorted() []entry {
	byKey := func(a, b entry) int { return a.commonHeader().key.compare(b.commonHeader().key) }
	return slices.SortedFunc(maps.Values(t.entries), byKey)
}

// Record is one record of cc.stats; a nil Value means that the entry was deleted.
type Record struct {
	Key     string
	Value   []byte
	EventID event.ID // the last event that changed the entry
}

// takeRecords calls give with the records of all entries that changed since the last call, ordered by key.
func (t *entryTable) takeRecords(give func(Record)) {
	keys := make([]key, 0, len(t.dirty))
	for k := range t.dirty {
		keys = append(keys, k)
	}

	slices.SortFunc(keys, key.compare)
	for _, k := range keys {
		r := Record{Key: k.String(), EventID: t.dirty[k]}
		if e, ok := t.entries[k]; ok {
			r.Value = t.encode(e)
		}
		give(r)
	}

	t.dropDirty()
}

// dropDirty makes takeRecords give nothing of what has changed so far.
func (t *entryTable) dropDirty() {
	clear(t.dirty)
	t.bytes = 0
}

// recordValue returns the value of a record by its key, nil: none.
func (t *entryTable) recordValue(text string) []byte {
	k, err := parseKey(text)
	if err != nil {
		return nil
	}
	e, ok := t.entries[k]
	if !ok {
		return nil
	}
	return t.encode(e)
}

var errInterval = errors.New("a row of another interval length")

// encode returns the value of an entry's record.
func (t *entryTable) encode(e entry) []byte {
	switch e := e.(type) {
	case *QueueRow:
		return e.Append(make([]byte, 0, 512), t.intervals.seconds())
	case *AgentRow:
		return e.Append(make([]byte, 0, 384), t.intervals.seconds())
	}

	value, err := json.Marshal(e) // marshalling texts and numbers cannot fail
	if err != nil {
		panic(err)
	}

	return value
}

// decode parses a record.
func (t *entryTable) decode(text string, value []byte) (entry, error) {
	k, err := parseKey(text)
	if err != nil {
		return nil, err
	}

	var e entry
	switch k.kind {
	case kindQueue:
		e = &QueueRow{}
	case kindAgent:
		e = &AgentRow{}
	case kindOpenCall:
		e = &call{}
	case kindOpenAgent:
		e = &agent{}
	case kindOpenInterval:
		e = &openInterval{}
	case kindAlert:
		e = &alert{}
	case kindFeed:
		e = &feed{}
	}

	if k.kind == kindQueue || k.kind == kindAgent {
		// A row of another length has the same key as one of this: the start alone does not tell.
		var row struct {
			Seconds int64 `json:"interval_seconds"`
		}
		if err := json.Unmarshal(value, &row); err != nil {
			return nil, fmt.Errorf("reading a row: %w", err)
		}
		if row.Seconds != t.intervals.seconds() {
			return nil, errInterval
		}
	}

	if err := json.Unmarshal(value, e); err != nil {
		return nil, fmt.Errorf("reading an entry: %w", err)
	}

	e.commonHeader().key = k
	return e, nil
}

// insertRecords inserts records read from cc.stats, values by key. It returns the unknown keys.
func (t *entryTable) insertRecords(values map[string][]byte) (foreign []string) {
	for text, value := range values {
		e, err := t.decode(text, value)
		if err != nil {
			foreign = append(foreign, text)
			continue
		}
		t.insert(e)
	}

	slices.Sort(foreign)
	return foreign
}

// callIndex finds the calls of an interaction.
type callIndex map[interaction][]*call

type interaction struct{ account, id unique.Handle[string] }

func (c *call) interactionKey() interaction {
	return interaction{c.key.account, unique.Make(c.Interaction)}
}

func (i callIndex) add(c *call) {
	if c.Interaction != "" {
		at := c.interactionKey()
		i[at] = append(i[at], c)
	}
}

func (i callIndex) remove(c *call) {
	if c.Interaction == "" {
		return
	}

	at := c.interactionKey()
	left := slices.DeleteFunc(i[at], func(o *call) bool { return o == c })
	if len(left) > 0 {
		i[at] = left
	} else {
		delete(i, at)
	}
}

// newest returns the call of an interaction that entered its queue last, nil: none.
func (i callIndex) newest(of interaction) (newest *call) {
	for _, c := range i[of] {
		if newest == nil || cmp.Or(cmp.Compare(c.EnteredMS, newest.EnteredMS), c.key.compare(newest.key)) > 0 {
			newest = c
		}
	}
	return newest
}
