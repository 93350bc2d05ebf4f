package fanout

// ring is the recent history of one partition, oldest batch first, bounded in
// bytes. Its owner's lock guards it; the batches themselves are immutable.
type ring struct {
	batches []*batch
	bytes   int64
	limit   int64
	next    int64 // the offset after the newest frame, or where the stream began
}

func (r *ring) reset(next int64) {
	r.batches, r.bytes, r.next = nil, 0, next
}

func (r *ring) add(b *batch) {
	r.next = b.end
	if len(b.frames) == 0 {
		return
	}
	r.batches = append(r.batches, b)
	r.bytes += int64(b.held)
	drop := 0
	for r.bytes > r.limit && drop < len(r.batches)-1 {
		r.bytes -= int64(r.batches[drop].held)
		r.batches[drop] = nil
		drop++
	}
	r.batches = r.batches[drop:]
}

// first is the oldest offset the ring can serve from.
func (r *ring) first() int64 {
	if len(r.batches) == 0 {
		return r.next
	}
	return r.batches[0].frames[0].offset
}

// from is the batches that hold offset and everything after it; the first may
// begin before offset. ok is false when offset is older than the ring.
func (r *ring) from(offset int64) (batches []*batch, ok bool) {
	if offset < r.first() {
		return nil, false
	}
	lo, hi := 0, len(r.batches)
	for lo < hi {
		mid := (lo + hi) / 2
		if r.batches[mid].end <= offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return append([]*batch(nil), r.batches[lo:]...), true
}
