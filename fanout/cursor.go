package fanout

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"trunkline/event"
)

// position is a delivery position in a partition of cc.evt.
type position struct {
	next   int64 // offset of the next record
	source int64 // event.Position.Packed of the raw record of the last message before it, to detect repeats; -1: none
	epoch  int32 // leader epoch of the record before it; unknownEpoch: not known
}

// unknownEpoch is the value of position.epoch for an unknown leader epoch.
const unknownEpoch = -1

// positionAt returns the position at an offset, with source and epoch unknown.
func positionAt(offset int64) position { return position{offset, -1, unknownEpoch} }

// partitionPosition is a position and its partition.
type partitionPosition struct {
	partition int
	position
}

// cursorTracker tracks one subscriber's positions, for clients that requested
// cursors. The subscriber's lock guards it.
type cursorTracker struct {
	logID      logID
	partitions int               // of cc.evt, when the subscriber's partitions were last chosen
	positions  []trackedPosition // in the order of their partitions
	lastID     event.ID
	dirty      bool // events were delivered since the last cursor
}

// trackedPosition is a position in a partition that the subscriber follows or has
// stopped following.
type trackedPosition struct {
	partitionPosition
	leftAt time.Time // when it stopped following the partition; zero: it follows it
}

// leftRetention is the time for which a position is kept after a subscriber has stopped following the
// partition: it may follow it again as soon as this node has received a delayed
// account tree or record of cc.accounts.
const leftRetention = time.Minute

// recordDelivered records an event that was put on the subscriber's queue.
func (t *cursorTracker) recordDelivered(m *frame) {
	t.advance(int(m.partition), position{m.offset + 1, m.rawPosition, m.epoch})
	t.lastID = m.id
	t.dirty = true
}

func (t *cursorTracker) find(partition int) (i int, found bool) {
	return slices.BinarySearchFunc(t.positions, partition,
		func(p trackedPosition, partition int) int { return cmp.Compare(p.partition, partition) })
}

// advance moves a partition's position forward, never back.
func (t *cursorTracker) advance(partition int, to position) {
	i, found := t.find(partition)
	if !found {
		t.positions = slices.Insert(t.positions, i,
			trackedPosition{partitionPosition: partitionPosition{partition, to}})
		return
	}

	p := &t.positions[i].position
	// At the same offset only a known epoch is news.
	if to.next > p.next || to.next == p.next && p.epoch == unknownEpoch {
		p.next, p.epoch = to.next, to.epoch
	}

	p.source = max(p.source, to.source)
}

// join starts to track a partition at a position, or at the position kept by leave if
// that is younger than leftRetention, and returns the one chosen.
func (t *cursorTracker) join(partition int, at position, now time.Time) position {
	i, found := t.find(partition)
	switch {
	case !found:
		t.positions = slices.Insert(t.positions, i,
			trackedPosition{partitionPosition: partitionPosition{partition, at}})
	case !t.positions[i].leftAt.IsZero() && now.Sub(t.positions[i].leftAt) >= leftRetention:
		t.positions[i].position = at
	}

	t.positions[i].leftAt = time.Time{}
	return t.positions[i].position
}

// retainPosition keeps a partition's position, if there is one, for leftRetention.
func (t *cursorTracker) retainPosition(partition int, now time.Time) {
	i, found := t.find(partition)
	if found {
		t.positions[i].leftAt = now
	}
}

// cursor encodes the last event's id and the positions.
func (t *cursorTracker) cursor() string {
	t.positions = slices.DeleteFunc(t.positions, func(p trackedPosition) bool {
		return !p.leftAt.IsZero() && time.Since(p.leftAt) >= leftRetention
	})
	c := newCursor(t.logID, t.partitions)
	for i := range t.positions {
		c.add(t.positions[i].partitionPosition)
	}
	return c.encode(t.lastID)
}

// The first byte of a cursor's binary part is its version. Version 1 has
// neither log id nor leader epochs: its positions are checked against the
// bounds of the log only. Versions 1 and 2 have a position of every partition.
const (
	cursorV1 = 1
	cursorV2 = 2
	cursorV3 = 3

	// First bytes up to this one are reserved for versions of newer nodes. Other input
	// seldom begins so: the first base64 character would be an upper-case letter up to
	// D.
	cursorReserved = 15
)

// cursorWriter encodes version 3: the log id, the number of partitions, and for each
// position its partition (distance from the one after the last), the next offset, the
// distance from the source offset, and the leader epoch if it differs from that of the
// position before.
type cursorWriter struct {
	raw   []byte
	next  int // partition after the last
	epoch int32
}

func newCursor(log logID, partitions int) *cursorWriter {
	c := &cursorWriter{raw: make([]byte, 0, 64), epoch: unknownEpoch}
	c.raw = append(c.raw, cursorV3)
	c.raw = append(c.raw, log[:]...)
	c.raw = binary.AppendUvarint(c.raw, uint64(partitions))
	return c
}

// add adds a position of a partition after the last.
func (c *cursorWriter) add(p partitionPosition) {
	c.raw = binary.AppendUvarint(c.raw, uint64(p.partition-c.next))
	c.next = p.partition + 1

	changed := uint64(0)
	if p.epoch != c.epoch {
		changed = 1
	}

	c.raw = binary.AppendUvarint(c.raw, uint64(p.position.next)<<1|changed)
	if changed == 1 {
		c.epoch = p.epoch
		// Plus one, because unknownEpoch is negative.
		c.raw = binary.AppendUvarint(c.raw, uint64(c.epoch+1))
	}

	c.raw = binary.AppendVarint(c.raw, p.position.next-p.source)
}

func (c *cursorWriter) encode(last event.ID) string {
	return last.String() + "." + base64.RawURLEncoding.EncodeToString(c.raw)
}

var (
	errInvalidCursor = errors.New("not an event id or a cursor")
	errNewerCursor   = errors.New("the cursor is of a newer version")
)

// resumePoint is a decoded value of since: an event id, or a cursor if positions is
// not nil. The cursor of a client that has received no event has no id.
type resumePoint struct {
	id         event.ID
	earliest   bool                // the whole log
	log        logID               // zero: not known
	partitions int                 // their number when the cursor was made; earlier versions have positions of all
	positions  []partitionPosition // ordered by partition
}

// resumes reports whether the client requests past events, and not only live ones.
func (r *resumePoint) resumes() bool { return r.earliest || r.id != 0 || r.positions != nil }

// positionIn returns the position in a partition.
func (r *resumePoint) positionIn(partition int) (at position, found bool) {
	i, found := slices.BinarySearchFunc(r.positions, partition,
		func(p partitionPosition, partition int) int { return cmp.Compare(p.partition, partition) })
	if found {
		at = r.positions[i].position
	}
	return at, found
}

// parseSince decodes the value of since. It returns errNewerCursor for a cursor of a
// newer version, and errInvalidCursor for a value that is neither an event id nor a cursor.
func parseSince(s string) (resumePoint, error) {
	head, tail, isCursor := strings.Cut(s, ".")
	if !isCursor {
		id, err := event.ParseID(head)
		return resumePoint{id: id}, err
	}

	var at resumePoint
	if head != "" {
		var err error
		at.id, err = event.ParseID(head)
		if err != nil {
			return resumePoint{}, err
		}
	}

	raw, err := base64.RawURLEncoding.Strict().DecodeString(tail)
	if err != nil || len(raw) == 0 {
		return resumePoint{}, errInvalidCursor
	}

	if raw[0] > cursorV3 && raw[0] <= cursorReserved {
		return resumePoint{}, errNewerCursor
	}

	r := cursorReader{raw: raw[1:], epoch: unknownEpoch}
	if raw[0] != cursorV1 {
		if len(r.raw) < len(at.log) {
			return resumePoint{}, errInvalidCursor
		}
		r.raw = r.raw[copy(at.log[:], r.raw):]
	}

	switch raw[0] {
	case cursorV1:
		at.positions = r.positions(r.partitionInOrder, r.positionV1)
	case cursorV2:
		at.positions = r.positions(r.partitionInOrder, r.positionV2)
	case cursorV3:
		at.partitions = int(r.uvarint(event.MaxPartitions))
		at.positions = r.positions(r.partitionAfterDistance, r.positionV2)
	}

	if r.invalid || len(at.positions) == 0 {
		return resumePoint{}, errInvalidCursor
	}

	// Versions 1 and 2 do not say the number; they have a position of every partition.
	at.partitions = max(at.partitions, at.positions[len(at.positions)-1].partition+1)
	return at, nil
}

// cursorReader decodes the positions of a cursor.
type cursorReader struct {
	raw     []byte
	next    int // partition after the last
	epoch   int32
	invalid bool
}

func (r *cursorReader) positions(partition func() int, one func() position) []partitionPosition {
	var all []partitionPosition
	for len(r.raw) > 0 && !r.invalid {
		p := partition()
		if p >= event.MaxPartitions {
			r.invalid = true
			break
		}

		r.next = p + 1
		all = append(all, partitionPosition{p, one()})
	}

	return all
}

func (r *cursorReader) partitionInOrder() int { return r.next }
func (r *cursorReader) partitionAfterDistance() int {
	return r.next + int(r.uvarint(event.MaxPartitions))
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
		r.invalid, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[n:]
	return v
}

func (r *cursorReader) distance(next int64) int64 {
	v, n := binary.Varint(r.raw)
	if n <= 0 || v > next+1 || v < -1<<62 {
		r.invalid, r.raw = true, nil
		return 0
	}
	r.raw = r.raw[n:]
	return v
}
