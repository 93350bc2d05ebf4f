package state

import (
	"encoding/json"

	"trunkline/event"
)

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

// processed returns SourcePosition as an increasing number, -1 if it is unknown.
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
