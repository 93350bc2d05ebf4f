package fanout

import (
	"cmp"
	"slices"
	"time"
)

// ring keeps the newest batches of one partition, oldest first, bounded in bytes.
// The stream's lock guards it; the batches are immutable.
type ring struct {
	batches       []*batch
	bytes         int64
	maxBytes      int64
	nextOffset    int64     // the offset after the newest frame; initially the start of the stream
	completeSince time.Time // when the ring's first offset was the end of the log; zero: unknown
}

// reset empties the ring. next was the end of the log at the time began.
func (r *ring) reset(next int64, began time.Time) {
	r.batches, r.bytes, r.nextOffset, r.completeSince = nil, 0, next, began
}

func (r *ring) add(b *batch) {
	r.nextOffset = b.end
	if len(b.frames) == 0 {
		return
	}

	r.batches = append(r.batches, b)
	r.bytes += int64(b.RetainedBytes)

	drop := 0
	for r.bytes > r.maxBytes && drop < len(r.batches)-1 {
		r.bytes -= int64(r.batches[drop].RetainedBytes)
		r.batches[drop] = nil
		drop++
	}

	if drop > 0 {
		r.batches, r.completeSince = r.batches[drop:], time.Time{}
	}
}

// first returns the oldest offset in the ring.
func (r *ring) first() int64 {
	if len(r.batches) == 0 {
		return r.nextOffset
	}
	return r.batches[0].frames[0].offset
}

// framesFrom returns the frames from offset on of the batch that holds it, and the offset
// after the batch. ok is false when offset is not in the ring.
func (r *ring) framesFrom(offset int64) (frames []frame, upTo int64, ok bool) {
	if offset < r.first() || offset >= r.nextOffset {
		return nil, 0, false
	}

	i, _ := slices.BinarySearchFunc(r.batches, offset, func(b *batch, offset int64) int {
		if b.end <= offset {
			return -1
		}
		return 1
	})
	if i == len(r.batches) { // the offsets from there on had no messages
		return nil, r.nextOffset, true
	}

	b := r.batches[i]
	j, _ := slices.BinarySearchFunc(b.frames, offset,
		func(f frame, offset int64) int { return cmp.Compare(f.offset, offset) })

	return b.frames[j:], b.end, true
}

// readAt returns when the record at an offset was read; ok is false when it is not in
// the ring.
func (r *ring) readAt(offset int64) (at time.Time, ok bool) {
	for i := len(r.batches) - 1; i >= 0; i-- {
		b := r.batches[i]
		if b.frames[0].offset <= offset {
			return b.readAt, offset < b.end
		}
	}
	return time.Time{}, false
}

// epochBefore returns the leader epoch of the last frame before offset; ok is
// false when the ring does not have one.
func (r *ring) epochBefore(offset int64) (epoch int32, ok bool) {
	for i := len(r.batches) - 1; i >= 0; i-- {
		b := r.batches[i]
		if b.frames[0].offset >= offset {
			continue
		}

		j, _ := slices.BinarySearchFunc(b.frames, offset,
			func(f frame, offset int64) int { return cmp.Compare(f.offset, offset) })
		return b.frames[j-1].epoch, true
	}

	return unknownEpoch, false
}
