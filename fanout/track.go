package fanout

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"trunkline/event"
)

// place is how far a partition has been delivered: the next offset of cc.evt,
// and the packed position (event.Position.Packed) of the raw record of the last
// message before it (-1: none), by which repeats are known.
type place struct{ next, source int64 }

// track is how far one subscriber has come in every partition, kept exactly
// for clients that asked for cursors. The subscriber's lock guards it.
type track struct {
	places []place
	lastID event.ID
	dirty  bool // events since the last cursor
}

// passed notes an event that was put on the subscriber's queue.
func (t *track) passed(m *frame) {
	t.reach(int(m.part), place{m.offset + 1, m.source})
	t.lastID = m.id
	t.dirty = true
}

// reach moves a partition's place ahead, never back. Partitions added later
// begin at their beginning.
func (t *track) reach(partition int, to place) {
	for len(t.places) <= partition {
		t.places = append(t.places, place{0, -1})
	}
	p := &t.places[partition]
	p.next = max(p.next, to.next)
	p.source = max(p.source, to.source)
}

// cursor is the position as a client carries it: the last event's id and, of
// all partitions, where to go on.
func (t *track) cursor() string { return appendCursor(t.lastID, t.places) }

// cursorVersion is the first byte of the positions, for the day they change.
const cursorVersion = 1

func appendCursor(last event.ID, places []place) string {
	raw := make([]byte, 0, 2+6*len(places))
	raw = append(raw, cursorVersion)
	for _, p := range places {
		raw = binary.AppendUvarint(raw, uint64(p.next))
		raw = binary.AppendVarint(raw, p.next-p.source)
	}
	return last.String() + "." + base64.RawURLEncoding.EncodeToString(raw)
}

var errCursor = errors.New("not an event id or a cursor")

// parseSince reads what a client resumes from: an event id, or a cursor, whose
// places are then not nil. A cursor of a client that has seen no event yet has
// no id.
func parseSince(s string) (event.ID, []place, error) {
	head, tail, isCursor := strings.Cut(s, ".")
	if !isCursor {
		id, err := event.ParseID(head)
		return id, nil, err
	}
	var id event.ID
	if head != "" {
		var err error
		if id, err = event.ParseID(head); err != nil {
			return 0, nil, err
		}
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(tail)
	if err != nil || len(raw) == 0 || raw[0] != cursorVersion {
		return 0, nil, errCursor
	}
	raw = raw[1:]
	places := []place{}
	for len(raw) > 0 {
		next, n := binary.Uvarint(raw)
		if n <= 0 || next > 1<<62 || len(places) == event.MaxPartitions {
			return 0, nil, errCursor
		}
		raw = raw[n:]
		ahead, n := binary.Varint(raw)
		if n <= 0 || ahead > int64(next)+1 || ahead < -1<<62 {
			return 0, nil, errCursor
		}
		raw = raw[n:]
		places = append(places, place{int64(next), int64(next) - ahead})
	}
	if len(places) == 0 {
		return 0, nil, errCursor
	}
	return id, places, nil
}
