package state

import (
	"encoding/binary"

	"trunkline/event"
)

// endedCall is the entry of a call that has ended, as it is kept in memory: with all
// members, in a few hundred bytes. A busy partition has thousands of them for every
// call that has not ended, since each waits for late events (endedAge).
type endedCall struct {
	eventID event.ID
	// data has the account and the id, then Entry.texts, the queues, Entry.packedNumbers, and the history.
	// A text follows twice its length; an odd number stands for the id (sameAsID) or
	// for one of endedWords.
	data string
}

const sameAsID = 1

// endedWord returns the odd number of a text that most ended calls have, 0 for others.
func endedWord(s string) uint64 {
	switch s {
	case string(event.NameCallEnded):
		return 3
	case string(event.NameQueueCallEnded):
		return 5
	case string(event.NameQueueCallAbandoned):
		return 7
	case string(event.Talking):
		return 9
	case string(event.Ringing):
		return 11
	case string(event.Waiting):
		return 13
	}

	return 0
}

// endedWords has the texts of endedWord in their order.
func endedWords() [6]string {
	return [...]string{string(event.NameCallEnded), string(event.NameQueueCallEnded),
		string(event.NameQueueCallAbandoned),
		string(event.Talking), string(event.Ringing), string(event.Waiting)}
}

// texts returns the texts of an entry after its account and id, except those that
// follow from its kind.
func (e *Entry) texts() [12]*string {
	return [...]*string{
		(*string)(&e.Name), &e.AgentID, &e.AgentName, &e.QueueID, &e.CallID, &e.InteractionID, &e.OriginationCallID,
		&e.Caller, &e.Callee, &e.Reason, (*string)(&e.PreviousState), &e.Source,
	}
}

// packedNumber is a number of an entry, and a number near which it usually lies.
type packedNumber struct {
	value *int64
	near  int64
}

// packedNumbers returns the numbers of an entry after its event id.
func (e *Entry) packedNumbers() [7]packedNumber {
	milli := e.EventID.Milli()
	seconds := milli / 1000
	return [...]packedNumber{
		{&e.Since, seconds}, {&e.PreviousSince, seconds}, {&e.TimestampMS, milli}, {&e.EnteredMS, milli},
		{&e.AnsweredMS, milli},
		{&e.WaitMS.Value, 0}, {&e.TalkMS.Value, 0},
	}
}

// isCompact reports whether an endedCall has all members of the entry.
func (e *Entry) isCompact() bool {
	return e.Kind == Call && e.State == event.Ended && e.AfterCall == "" && len(e.Ringing) == 0 &&
		len(e.Contacts) == 0 && e.KnownAgent == nil &&
		e.AgentState == "" && e.Contact == "" && e.Position == 0 && e.Agent == nil
}

// compact returns the form in which the entry is kept in memory.
func (e *Entry) compact() Value {
	if !e.isCompact() {
		return e
	}

	var buffer [1024]byte
	b := buffer[:0]
	text := func(s string) {
		b = binary.AppendUvarint(b, 2*uint64(len(s)))
		b = append(b, s...)
	}

	text(e.AccountID)
	text(e.ID)
	for _, s := range e.texts() {
		switch word := endedWord(*s); {
		case *s == e.ID:
			b = append(b, sameAsID)
		case word != 0:
			b = binary.AppendUvarint(b, word)
		default:
			text(*s)
		}
	}

	b = binary.AppendUvarint(b, uint64(len(e.Queues)))
	for _, queue := range e.Queues {
		text(queue)
	}

	for _, n := range e.packedNumbers() {
		b = binary.AppendVarint(b, *n.value-n.near)
	}

	b = append(b, bit(e.WaitMS.Known)|bit(e.TalkMS.Known)<<1|bit(e.LegOutlivesVisit)<<2|bit(e.History != nil)<<3)
	if e.History != nil {
		b = binary.AppendUvarint(b, uint64(len(e.History.Steps)))
		for i := range e.History.Steps {
			for _, s := range e.History.Steps[i].texts() {
				text(*s)
			}
		}

		text(e.History.VisitID)
	}

	return &endedCall{e.EventID, string(b)}
}

func bit(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// entry returns the entry. Its texts share the memory of c.
func (c *endedCall) entry() Entry {
	u := unpacker{rest: c.data}
	e := Entry{EventID: c.eventID, Kind: Call, AccountID: u.text()}
	e.State = event.Ended
	e.ID = u.text()
	u.id = e.ID

	for _, s := range e.texts() {
		*s = u.text()
	}

	for range u.uvarint() {
		e.Queues = append(e.Queues, u.text())
	}

	for _, n := range e.packedNumbers() {
		*n.value = n.near + u.varint()
	}

	bits := u.rest[0]
	e.WaitMS.Known, e.TalkMS.Known, e.LegOutlivesVisit = bits&1 != 0, bits&2 != 0, bits&4 != 0
	u.rest = u.rest[1:]

	if bits&8 != 0 {
		e.History = u.callHistory()
	}

	return e
}

// unpacker reads what compact has written: rest is still to read; id is the entry's, for sameAsID.
type unpacker struct{ rest, id string }

func (u *unpacker) text() string {
	n := u.uvarint()
	switch {
	case n == sameAsID:
		return u.id
	case n%2 != 0:
		// 1 is sameAsID, so the words begin at 3.
		return endedWords()[n/2-1]
	}

	s := u.rest[:n/2]
	u.rest = u.rest[n/2:]
	return s
}

func (u *unpacker) callHistory() *History {
	h := &History{Steps: make([]Step, u.uvarint())}
	for i := range h.Steps {
		for _, s := range h.Steps[i].texts() {
			*s = u.text()
		}
	}
	h.VisitID = u.text()
	return h
}

// uvarint is binary.Uvarint of a string.
func (u *unpacker) uvarint() (n uint64) {
	for i := 0; ; i++ {
		b := u.rest[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			u.rest = u.rest[i+1:]
			return n
		}
	}
}

// varint is binary.Varint of a string.
func (u *unpacker) varint() int64 {
	n := u.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

// Key returns the key of the call.
func (c *endedCall) Key() Key {
	u := unpacker{rest: c.data}
	return Key{Account: u.text(), Kind: Call, ID: u.text()}
}

// Append appends the value of the call's record.
func (c *endedCall) Append(dst []byte) []byte {
	e := c.entry()
	return e.Append(dst)
}

func (c *endedCall) lastEvent() event.ID { return c.eventID }

func (c *endedCall) class() lifetimeClass { return endedClass }

func (c *endedCall) estimatedSize() int {
	e := c.entry()
	return e.estimatedSize()
}

// entryOf returns the entry that a value holds, or nil.
func entryOf(v Value) *Entry {
	switch v := v.(type) {
	case *Entry:
		return v
	case *endedCall:
		e := v.entry()
		return &e
	}
	return nil
}
