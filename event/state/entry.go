package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
)

// Kind is the kind of object that an entry describes.
type Kind string

// The kinds. Identity and PositionKind are the kinds of records that describe no
// agent, call or device, see SeenNumbers and Position.
const (
	Agent        Kind = "agent"
	Call         Kind = "call"
	Device       Kind = "device"
	Identity     Kind = "identity"
	PositionKind Kind = "position"
)

// Key identifies an agent, call or device: by its id at the source, within its
// account. With kind Identity it identifies SeenNumbers, and has no account.
type Key struct {
	Account string
	Kind    Kind
	ID      string
}

// String returns the key of the entry's record on cc.state: <account>|<kind>|<id>. An
// account contains no "|"; an id may.
func (k Key) String() string { return k.Account + "|" + string(k.Kind) + "|" + k.ID }

// ParseKey parses the key of a record on cc.state.
func ParseKey(s string) (Key, error) {
	account, rest, ok := strings.Cut(s, "|")
	kind, id, ok2 := strings.Cut(rest, "|")
	if !ok || !ok2 || (account == "") != (kind == string(Identity)) || id == "" {
		return Key{}, fmt.Errorf("%q is not <account>|<kind>|<id>", s)
	}

	switch k := (Key{account, Kind(kind), id}); k.Kind {
	case Agent, Call, Device, Identity:
		return k, nil
	}

	return Key{}, fmt.Errorf("%q has an unknown kind", s)
}

// Value is the value of a record on cc.state other than a Position: an *Entry or
// *SeenNumbers. Values are immutable, so they may be retained. An Entry of a call that has
// ended may have a compact form.
type Value interface {
	// Key returns the key of the record.
	Key() Key
	// Append appends the value of the record.
	Append(dst []byte) []byte

	lastEvent() event.ID // the event that last changed it
	class() lifetimeClass
	estimatedSize() int // estimated size of its record
}

// Entry is the state of one agent, call or device: the value of a record on cc.state.
// It holds the last known value of each fact, not only the facts of the last event.
type Entry struct {
	AccountID string `json:"account_id"`
	Kind      Kind   `json:"kind"`
	ID        string `json:"id"`
	// the last event that changed the entry, or one up to an hour before the last event about it
	EventID event.ID `json:"event_id"`
	Since   int64    `json:"since"` // Unix seconds of the change to State
	event.Facts
	Source string   `json:"source,omitempty"` // metadata.source of the last event about it, except call.progress
	Queues []string `json:"queues,omitempty"` // agent: its queues, sorted
	// AfterCall is the state of the agent after its current call; "": available.
	AfterCall  event.State `json:"after_call,omitempty"`
	EnteredMS  int64       `json:"entered_ms,omitempty"`  // call: Unix milliseconds of its entry into the queue
	AnsweredMS int64       `json:"answered_ms,omitempty"` // call: Unix milliseconds of the answer by an agent

	Leg      bool        `json:"leg,omitempty"`      // call: its leg is known, and goes on after a visit to a queue
	Ringing  []string    `json:"ringing,omitempty"`  // call: the agents at whom it rings
	Contacts []string    `json:"contacts,omitempty"` // device: its registrations, sorted
	Known    *KnownAgent `json:"known,omitempty"`    // agent: what its state follows from
	History  *History    `json:"history,omitempty"`  // call: what has happened to it in its queues, until it ends
}

// Visits reports whether the call is in a queue: it waits there, or an agent of the queue
// has it. A leg of such a call that has an entry of its own does not.
func (e *Entry) Visits() bool {
	return e.Kind == Call && e.QueueID != "" && e.EnteredMS != 0 && e.Live()
}

// leftQueue reports whether the call has left its queue, and it is not known yet whether
// an agent has answered.
func (e *Entry) leftQueue() bool {
	return e.Kind == Call && e.State == event.Talking && e.QueueID == "" && e.EnteredMS != 0 && e.AnsweredMS == 0
}

// Key returns the entry's key.
func (e *Entry) Key() Key { return Key{e.AccountID, e.Kind, e.ID} }

// PositionKey is the key of a partition's Position on cc.state.
const PositionKey = "|position"

// HeaderEventID is the header of a tombstone with the id of the event at which the
// entry was deleted.
const HeaderEventID = "event_id"

// Position is the position up to which the state of a partition is complete: the fold
// of the facts of all events before Offset. It is the last record of each record batch
// on cc.state, after the entries that it covers.
type Position struct {
	Kind        Kind     `json:"kind"`               // PositionKind
	EventID     event.ID `json:"event_id,omitempty"` // the last event folded; absent: none
	Offset      int64    `json:"offset"`             // in cc.evt, after that event
	LeaderEpoch int32    `json:"leader_epoch"`       // of that event's record; -1 unknown
	TopicID     string   `json:"topic_id"`           // of cc.evt
	// SourcePosition is the last processed raw record: each raw record up to it is an
	// event before Offset, a dead letter, or was dropped as a repeated event. "":
	// unknown.
	SourcePosition string `json:"source_position,omitempty"`
	// EventPosition is the highest source_position of the folded events, which
	// identifies repeats after Offset. If absent, SourcePosition does.
	EventPosition string `json:"event_position,omitempty"`
	// Since is the start of the state, Unix seconds: earlier events have no facts and
	// are not included.
	Since int64 `json:"since"`
	// StateOffset is the offset in cc.state that its writer expected for the position's
	// record. A lower one shows that cc.state lost records before this batch.
	StateOffset int64 `json:"state_offset,omitempty"`
	// Incomplete: cc.state lost records, and not all of them are written again before
	// this position.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Intact reports whether the records of cc.state up to the position's own, at offset,
// are the state at the position, as far as the position can tell.
func (p *Position) Intact(offset int64) bool { return !p.Incomplete && offset >= p.StateOffset }

// Append appends the value of the position's record.
func (p *Position) Append(dst []byte) []byte {
	value := *p
	value.Kind = PositionKind
	text, _ := json.Marshal(value) // marshalling strings and numbers cannot fail
	return append(dst, text...)
}

// Behind reports whether the state of q is ahead of that of p.
func (p *Position) Behind(q *Position) bool {
	if p.EventID != q.EventID {
		return p.EventID < q.EventID
	}
	return p.processed() < q.processed()
}

// processed returns SourcePosition as an increasing number.
func (p *Position) processed() int64 {
	at, err := event.ParsePosition(p.SourcePosition)
	if err != nil {
		return -1
	}
	return at.Packed()
}

// Repeats returns the highest source_position of the folded events: an event after
// Offset with this or a lower one is a repeat. ok is false if it is unknown.
func (p *Position) Repeats() (at event.Position, ok bool) {
	text := p.EventPosition
	if text == "" {
		text = p.SourcePosition
	}
	at, err := event.ParsePosition(text)
	return at, err == nil
}

// Append appends the value of the entry's record.
func (e *Entry) Append(dst []byte) []byte {
	dst = append(dst, `{"account_id":`...)
	dst = event.AppendString(dst, e.AccountID)
	dst = append(dst, `,"kind":"`...)
	dst = append(dst, e.Kind...)
	dst = append(dst, `","id":`...)
	dst = event.AppendString(dst, e.ID)
	dst = append(dst, `,"event_id":"`...)
	dst = e.EventID.Append(dst)
	dst = append(dst, `","since":`...)
	dst = strconv.AppendInt(dst, e.Since, 10)
	object := len(dst)
	dst = e.Facts.Append(dst)
	dst[object] = ',' // the facts are members of the entry
	dst = dst[:len(dst)-1]

	if e.Source != "" {
		dst = append(dst, `,"source":`...)
		dst = event.AppendString(dst, e.Source)
	}

	for i, queue := range e.Queues {
		if i == 0 {
			dst = append(dst, `,"queues":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, queue)
	}

	if len(e.Queues) > 0 {
		dst = append(dst, ']')
	}
	if e.AfterCall != "" {
		dst = append(dst, `,"after_call":`...)
		dst = event.AppendString(dst, string(e.AfterCall))
	}
	if e.EnteredMS != 0 {
		dst = append(dst, `,"entered_ms":`...)
		dst = strconv.AppendInt(dst, e.EnteredMS, 10)
	}
	if e.AnsweredMS != 0 {
		dst = append(dst, `,"answered_ms":`...)
		dst = strconv.AppendInt(dst, e.AnsweredMS, 10)
	}

	if e.Leg {
		dst = append(dst, `,"leg":true`...)
	}

	dst = appendTexts(dst, `,"ringing":[`, e.Ringing)
	dst = appendTexts(dst, `,"contacts":[`, e.Contacts)
	if e.Known != nil {
		dst = e.Known.appendJSON(append(dst, `,"known":`...))
	}
	if e.History != nil {
		dst = e.History.appendJSON(append(dst, `,"history":`...))
	}

	return append(dst, '}')
}

// appendTexts appends a member with an array, unless that is empty.
func appendTexts(dst []byte, member string, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}

	dst = append(dst, member...)
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, text)
	}

	return append(dst, ']')
}

// Live reports whether the entry is part of a snapshot: an agent at work, a call that
// has not ended, or a registered device.
func (e *Entry) Live() bool {
	switch e.State {
	case "", event.Offline, event.Ended, event.Unregistered:
		return false
	}
	return true
}

// How long entries without an event are kept.
const (
	offlineAge = 7 * 24 * time.Hour
	agentAge   = 31 * 24 * time.Hour
	callAge    = 24 * time.Hour // some switches do not report the end of every call
	deviceAge  = 24 * time.Hour
	endedAge   = 15 * time.Minute // a call that has ended, an unregistered device
	refreshAge = time.Hour        // see the package documentation
)

// Expires returns the id from which the entry is expired, unless an event about it
// comes before.
func (e *Entry) Expires() event.ID { return expiryOf(e) }

// expiryOf is Expires of any value. An id is a time in nanoseconds, so a lifetime can be added to it.
func expiryOf(v Value) event.ID { return v.lastEvent() + event.ID(classAges[v.class()]) }

// lifetimeClass is a set of entries with the same lifetime.
type lifetimeClass uint8

const (
	endedClass lifetimeClass = iota
	callClass
	deviceClass
	offlineClass
	agentClass
	identityClass
	classes
)

var classAges = [classes]time.Duration{
	endedClass: endedAge, callClass: callAge, deviceClass: deviceAge, offlineClass: offlineAge, agentClass: agentAge,
	identityClass: numbersAge,
}

func (e *Entry) lastEvent() event.ID { return e.EventID }

func (e *Entry) class() lifetimeClass {
	switch {
	case e.State == event.Ended && e.Kind == Call, e.State == event.Unregistered && e.Kind == Device:
		return endedClass
	case e.Kind == Call:
		return callClass
	case e.Kind == Device:
		return deviceClass
	case e.State == event.Offline:
		return offlineClass
	}

	return agentClass
}

// Record is a parsed record of cc.state: exactly one of Entry, Numbers, Deleted and
// Position is set.
type Record struct {
	Entry    *Entry
	Numbers  *SeenNumbers
	Deleted  *Key // the agent, call, device or numbers were deleted
	Position *Position
	EventID  event.ID // of the value, tombstone or position; 0: a tombstone without one
}

// Value returns the record's entry or numbers, or nil.
func (r *Record) Value() Value {
	switch {
	case r.Entry != nil:
		return r.Entry
	case r.Numbers != nil:
		return r.Numbers
	}
	return nil
}

// Key returns the key of a record other than a Position.
func (r *Record) Key() Key {
	if r.Deleted != nil {
		return *r.Deleted
	}
	return r.Value().Key()
}

var errForeign = errors.New("not a record of the state")

// ParseRecord parses a record of cc.state. A nil value is a tombstone; eventID is its
// header HeaderEventID, which other records do not need.
func ParseRecord(key string, value, eventID []byte) (Record, error) {
	if key == PositionKey {
		p := &Position{}
		if err := json.Unmarshal(value, p); err != nil {
			return Record{}, fmt.Errorf("reading a position: %w", err)
		}
		return Record{Position: p, EventID: p.EventID}, nil
	}

	k, err := ParseKey(key)
	if err != nil {
		return Record{}, err
	}

	if value == nil {
		r := Record{Deleted: &k}
		if len(eventID) > 0 {
			r.EventID, err = event.ParseID(string(eventID))
			if err != nil {
				return Record{}, fmt.Errorf("reading a tombstone: %w", err)
			}
		}

		return r, nil
	}

	if k.Kind == Identity {
		n, err := parseNumbers(k, value)
		if err != nil {
			return Record{}, err
		}
		return Record{Numbers: n, EventID: n.EventID}, nil
	}

	e := &Entry{}
	if err := json.Unmarshal(value, e); err != nil {
		return Record{}, fmt.Errorf("reading an entry: %w", err)
	}
	if e.Key() != k {
		return Record{}, errForeign
	}

	return Record{Entry: e, EventID: e.EventID}, nil
}
