package fanout

import (
	"strings"
	"time"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/internal/kafka"
)

// batch holds the messages of one read of one partition. Its frames share one
// block.
type batch struct {
	conn.Block
	frames []frame
	start  int64     // history only: the batch is complete from this offset on
	end    int64     // the offset after the batch
	newest event.ID  // highest id of a frame that is no repeat; see markRepeats
	readAt time.Time // the ring only: when its records were read
}

// newBatch copies records, which are valid only until the next read, into frames. It
// skips records without an event id (written by another program) and counts them in
// skipped. With compress, each frame can be compressed once later, for all subscribers
// that negotiated compression.
func newBatch(records []kafka.Record, interned *interner, compress bool) (b *batch, skipped int) {
	size := 0
	for i := range records {
		size += len(records[i].Value) + conn.MaxHeader
	}

	var ids strings.Builder
	var compressed []compressedFrame
	if compress {
		compressed = make([]compressedFrame, len(records))
	}

	b = &batch{frames: make([]frame, 0, len(records)), end: records[len(records)-1].Offset + 1}
	b.Allocate(size)
	for i := range records {
		r := &records[i]
		id, err := event.MessageID(r.Value)
		if err != nil {
			skipped++
			continue
		}

		f := frame{
			Frame:       b.AppendMessage(int64(id), r.Value),
			partition:   uint16(r.Partition),
			epoch:       r.LeaderEpoch,
			id:          id,
			offset:      r.Offset,
			rawPosition: -1,
		}

		var typ, format, name, agent, queue, call, memberOf []byte
		for j := range r.Headers {
			switch h := &r.Headers[j]; h.Key {
			case event.HeaderType:
				typ = h.Value
			case event.HeaderAccount:
				f.account = interned.get(h.Value)
			case event.HeaderOriginalFormat:
				format = h.Value
			case event.HeaderName:
				name = h.Value
			case event.HeaderAgent:
				agent = h.Value
			case event.HeaderQueue:
				queue = h.Value
			case event.HeaderCall:
				call = h.Value
			case event.HeaderAgentQueues:
				memberOf = h.Value
			case event.HeaderPosition:
				p, err := event.ParsePosition(string(h.Value))
				if err == nil {
					f.rawPosition = p.Packed()
				}
			}
		}

		if compress {
			f.compressed = &compressed[i]
		}

		f.typeBits = event.TypeClassOf(event.Type(typ), string(format), event.Name(name))
		f.name = event.NameBit(name)
		f.ids = newFactIDs(&ids, agent, queue, call, memberOf)
		b.frames = append(b.frames, f)
	}

	b.RetainedBytes = batchBytes + b.Cap() + cap(b.frames)*frameBytes + ids.Cap()
	if compress {
		// at most, with every frame compressed
		b.RetainedBytes += b.Cap() + cap(b.frames)*(compressedFrameBytes+conn.BlockBytes+conn.FrameBytes)
	}

	return b, skipped
}

// markRepeats marks the frames whose source record is at or before source or in
// an earlier frame of the batch.
func (b *batch) markRepeats(source int64) {
	for i := range b.frames {
		m := &b.frames[i]
		m.isRepeat = m.rawPosition >= 0 && m.rawPosition <= source
		if !m.isRepeat {
			source, b.newest = max(source, m.rawPosition), max(b.newest, m.id)
		}
	}
}

// interner returns the same string for equal bytes, which saves an allocation
// per frame. It is not safe for concurrent use.
type interner struct {
	texts map[string]string
	bytes int
}

// Bounds of an interner: the longest string it keeps, and its total memory.
const (
	maxInterned      = 256
	maxInternedBytes = 1 << 20
	internedOverhead = 64 // per entry of the map
)

func (in *interner) get(b []byte) string {
	if s, ok := in.texts[string(b)]; ok {
		return s
	}

	s := string(b)
	if len(s) > maxInterned {
		return s
	}

	in.bytes += len(s) + internedOverhead
	if in.texts == nil || in.bytes > maxInternedBytes {
		in.texts, in.bytes = make(map[string]string), len(s)+internedOverhead
	}

	in.texts[s] = s
	return s
}
