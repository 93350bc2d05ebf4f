package fanout

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"trunkline/event"
)

// position is a delivery position in a partition of cc.evt.
type position struct {
	next   int64 // offset of the next record
	source int64 // event.Position.Packed of the raw record of the last message before it, to detect repeats; -1: none
	epoch  int32 // leader epoch of the record before it; unknownEpoch: not known
}

// unknownEpoch is the leader epoch of a position whose epoch is not known.
const unknownEpoch = -1

// startAt returns the position at an offset, with source and epoch unknown.
func startAt(offset int64) position { return position{offset, -1, unknownEpoch} }

// cursorTracker tracks one subscriber's position in every partition, for
// clients that requested cursors. The subscriber's lock guards it.
type cursorTracker struct {
	logID     logID
	positions []position
	lastID    event.ID
	dirty     bool // events were delivered since the last cursor
}

// delivered records an event that was put on the subscriber's queue.
func (t *cursorTracker) delivered(m *frame) {
	t.advance(int(m.part), position{m.offset + 1, m.source, m.epoch})
	t.lastID = m.id
	t.dirty = true
}

// advance moves a partition's position forward, never back. Partitions added
// later begin at offset 0.
func (t *cursorTracker) advance(partition int, to position) {
	for len(t.positions) <= partition {
		t.positions = append(t.positions, startAt(0))
	}
	p := &t.positions[partition]
	if to.next > p.next || to.next == p.next && p.epoch == unknownEpoch {
		p.next, p.epoch = to.next, to.epoch
	}
	p.source = max(p.source, to.source)
}

// cursor encodes the last event's id and the positions of all partitions.
func (t *cursorTracker) cursor() string { return appendCursor(t.logID, t.lastID, t.positions) }

// logID is the first 8 bytes of the topic id that Kafka assigned when the topic
// was created. Zero: unknown.
type logID [8]byte

// The first byte of a cursor's binary part is its version. Version 1 has
// neither log id nor leader epochs: its positions are checked against the
// bounds of the log only.
const (
	cursorV1 = 1
	cursorV2 = 2
)

// appendCursor encodes version 2: the log id and, for each partition, the next
// offset, the distance from the source offset, and the leader epoch where it is
// not the one of the partition before.
func appendCursor(log logID, last event.ID, positions []position) string {
	raw := make([]byte, 0, 2+len(log)+6*len(positions))
	raw = append(raw, cursorV2)
	raw = append(raw, log[:]...)
	epoch := int32(unknownEpoch)
	for _, p := range positions {
		changed := uint64(0)
		if p.epoch != epoch {
			changed = 1
		}
		raw = binary.AppendUvarint(raw, uint64(p.next)<<1|changed)
		if changed == 1 {
			epoch = p.epoch
			raw = binary.AppendUvarint(raw, uint64(epoch+1))
		}
		raw = binary.AppendVarint(raw, p.next-p.source)
	}
	return last.String() + "." + base64.RawURLEncoding.EncodeToString(raw)
}

var errCursor = errors.New("not an event id or a cursor")

// resumePoint is a decoded value of since: an event id, or a cursor, whose
// positions are not nil. The cursor of a client that has received no event has
// no id.
type resumePoint struct {
	id        event.ID
	log       logID // zero: not known
	positions []position
}

// parseSince decodes the value of since. Returns an error for anything that is
// neither an event id nor a cursor.
func parseSince(s string) (resumePoint, error) {
	head, tail, isCursor := strings.Cut(s, ".")
	if !isCursor {
		id, err := event.ParseID(head)
		return resumePoint{id: id}, err
	}
	var at resumePoint
	if head != "" {
		var err error
		if at.id, err = event.ParseID(head); err != nil {
			return resumePoint{}, err
		}
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(tail)
	if err != nil || len(raw) == 0 {
		return resumePoint{}, errCursor
	}
	r := cursorReader{raw: raw[1:]}
	switch raw[0] {
	case cursorV1:
		at.positions = r.positions(r.positionV1)
	case cursorV2:
		if len(r.raw) < len(at.log) {
			return resumePoint{}, errCursor
		}
		r.raw = r.raw[copy(at.log[:], r.raw):]
		r.epoch = unknownEpoch
		at.positions = r.positions(r.positionV2)
	}
	if r.bad || len(at.positions) == 0 {
		return resumePoint{}, errCursor
	}
	return at, nil
}

// cursorReader decodes the positions of a cursor.
type cursorReader struct {
	raw   []byte
	epoch int32
	bad   bool
}

func (r *cursorReader) positions(one func() position) []position {
	var all []position
	for len(r.raw) > 0 && !r.bad {
		if len(all) == event.MaxPartitions {
			r.bad = true
			break
		}
		all = append(all, one())
	}
	return all
}

func (r *cursorReader) positionV1() position {
	p := position{next: int64(r.uvarint(1 << 62)), epoch: unknownEpoch}
	p.source = p.next - r.distance(p.next)
	return p
}

func (r *cursorReader) positionV2() position {
	next := r.uvarint(1<<63 - 1)
	if next&1 == 1 {
		r.epoch = int32(r.uvarint(math.MaxInt32)) - 1
	}
	p := position{next: int64(next >> 1), epoch: r.epoch}
	p.source = p.next - r.distance(p.next)
	return p
}

func (r *cursorReader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.raw)
	if n <= 0 || v > most {
		r.bad, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[n:]
	return v
}

func (r *cursorReader) distance(next int64) int64 {
	v, n := binary.Varint(r.raw)
	if n <= 0 || v > next+1 || v < -1<<62 {
		r.bad, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[n:]
	return v
}
