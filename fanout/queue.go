package fanout

import (
	"sync"
	"unsafe"
)

// queue holds the frames that wait for one subscriber, in order. A frame of a
// batch is shared: the queue refers to it, and thereby keeps the whole batch in
// memory. The queue counts what it keeps, and tidy copies frames out of batches
// of which they are a small part. An empty queue has no memory of its own.
type queue struct {
	frames []*frame
	one    [1]*frame // backs frames while there is only one
	box    *[]*frame // backs frames otherwise; it returns to spare without an allocation
	head   int       // frames before head are gone
	sent   int       // bytes of frames[head] that are already out
	bytes  int       // waiting, all frames
	held   int       // bytes of memory that the queue keeps, at most: a batch counts once for each run of its frames
	newest *batch    // of the last frame; nil: it has none, or nothing waits
	tidied int       // frames before it have been looked at by tidy
	tls    int       // bytes of TLS records that the socket did not take; a part of held
}

// Sizes of the queue's own data, part of what it keeps in memory.
const (
	frameBytes   = int(unsafe.Sizeof(frame{}))
	batchBytes   = int(unsafe.Sizeof(batch{}))
	pointerBytes = int(unsafe.Sizeof((*frame)(nil)))
)

// slices of frames come from and go back to here, so that a subscriber at rest
// has none.
var spare = sync.Pool{New: func() any { s := make([]*frame, 0, 32); return &s }}

// Larger slices are left to the garbage collector: one burst must not pin them.
const maxPooled = 1024

func (q *queue) push(f *frame) {
	switch {
	case q.frames == nil:
		q.frames = q.one[:0]
	case q.box == nil:
		q.box = spare.Get().(*[]*frame)
		q.frames = append((*q.box)[:0], q.frames...)
		q.one[0] = nil // it would keep its batch as long as anything waits
	}
	q.frames = append(q.frames, f)
	if q.box != nil && cap(q.frames) != cap(*q.box) {
		*q.box = q.frames[:0] // the smaller slice would keep its frames
	}
	q.bytes += len(f.wire)
	q.held += pointerBytes
	if f.batch == nil || f.batch != q.newest {
		q.held += f.cost()
		q.newest = f.batch
	}
}

// spilled sets the bytes of TLS records that the socket did not take.
func (q *queue) spilled(bytes int) {
	q.held += bytes - q.tls
	q.tls = bytes
}

// countHeld is held without what other queues, or this one, have already
// counted in the sweep.
func (q *queue) countHeld(sweep uint64) int {
	held := q.tls
	for _, f := range q.frames[q.head:] {
		held += pointerBytes
		switch {
		case f.batch == nil:
			held += f.cost()
		case f.batch.counted != sweep:
			f.batch.counted = sweep
			held += f.cost()
		}
	}
	return held
}

// cost is the memory that a reference to f keeps.
func (f *frame) cost() int {
	if f.batch == nil {
		return frameBytes + cap(f.wire)
	}
	return f.batch.held
}

func (f *frame) sharesBatch(with *frame) bool { return f.batch != nil && f.batch == with.batch }

// tidy copies frames out of batches that are kept in memory for a small part of
// their bytes. Each frame is looked at once, so the cost is that of the copies.
func (q *queue) tidy() {
	end := len(q.frames)
	at := max(q.head, q.tidied)
	for at > q.head && at < end && q.frames[at].sharesBatch(q.frames[at-1]) {
		at++ // of a run that was left in its batch
	}
	sparse := at // frames from here to at are to be copied
	for at < end {
		run, size := at, 0
		for ; at < end && (at == run || q.frames[at].sharesBatch(q.frames[run])); at++ {
			size += len(q.frames[at].wire) + frameBytes
		}
		if b := q.frames[run].batch; b == nil || 2*(size+batchBytes) > b.held {
			q.copyOut(sparse, run)
			sparse = at
		}
	}
	q.copyOut(sparse, end)
	q.tidied = end
}

// copyOut puts copies of frames[from:to], which are whole runs, into a batch of
// their own.
func (q *queue) copyOut(from, to int) {
	if from == to {
		return
	}
	size := 0
	for i, f := range q.frames[from:to] {
		size += len(f.wire)
		if i == 0 || !f.sharesBatch(q.frames[from+i-1]) {
			q.held -= f.cost()
		}
	}
	b := &batch{frames: make([]frame, 0, to-from), slab: make([]byte, 0, size)}
	for i, f := range q.frames[from:to] {
		own := *f
		own.batch, own.at, own.packed = b, len(b.slab), nil
		b.slab = append(b.slab, f.wire...)
		own.wire = b.slab[own.at:len(b.slab):len(b.slab)]
		b.frames = append(b.frames, own)
		q.frames[from+i] = &b.frames[i]
	}
	b.held = batchBytes + cap(b.slab) + cap(b.frames)*frameBytes
	q.held += b.held
	if to == len(q.frames) {
		q.newest = b
	}
}

func (q *queue) empty() bool { return q.head == len(q.frames) }

// rest is the part of the first frame that is still to be sent.
func (q *queue) rest() []byte { return q.frames[q.head].wire[q.sent:] }

// What lies together in memory is copied only when it is smaller than this: a
// large write gains little from being larger.
const copyBelow = 16 << 10

// gather returns up to max bytes that wait, as one slice: of the shared slab
// itself as far as frames lie one behind the other, else a copy in scratch.
func (q *queue) gather(scratch []byte, max int) []byte {
	first := q.frames[q.head]
	size, i := len(q.rest()), q.head+1
	for ; i < len(q.frames) && size < max && q.frames[i].follows(q.frames[i-1]); i++ {
		size += len(q.frames[i].wire)
	}
	var out []byte
	if first.batch != nil {
		start := first.at + q.sent
		out = first.batch.slab[start : start+size]
	} else {
		out = q.rest()
	}
	if len(out) >= copyBelow || len(out) >= max || i == len(q.frames) {
		return out[:min(len(out), max)]
	}
	out = append(scratch[:0], out...)
	for ; i < len(q.frames) && len(out) < max; i++ {
		next := q.frames[i].wire
		out = append(out, next[:min(len(next), max-len(out))]...)
	}
	return out
}

// advance takes n sent bytes off the front. last is the last event that is
// out completely, nil when none was finished.
func (q *queue) advance(n int) (last *frame) {
	if n == q.bytes {
		for i := len(q.frames) - 1; i >= q.head && last == nil; i-- {
			if !q.frames[i].control {
				last = q.frames[i]
			}
		}
		q.release()
		return last
	}
	q.bytes -= n
	q.sent += n
	for q.sent >= len(q.frames[q.head].wire) { // not of the last one
		f := q.frames[q.head]
		q.sent -= len(f.wire)
		if !f.control {
			last = f
		}
		q.frames[q.head] = nil
		q.head++
		q.held -= pointerBytes
		if !f.sharesBatch(q.frames[q.head]) {
			q.held -= f.cost()
		}
	}
	if q.head >= 64 && q.head*2 >= len(q.frames) {
		left := copy(q.frames, q.frames[q.head:])
		clear(q.frames[left:])
		q.tidied = max(0, q.tidied-q.head)
		q.frames, q.head = q.frames[:left], 0
	}
	return last
}

// drop forgets everything but what must be finished: a frame that is partly
// out.
func (q *queue) drop() {
	if q.sent == 0 || q.empty() {
		q.release()
		return
	}
	q.dropTail()
}

// dropTail forgets all frames but the first, of which a part may be out.
func (q *queue) dropTail() {
	if q.empty() {
		return
	}
	clear(q.frames[q.head+1:])
	q.frames = q.frames[:q.head+1]
	q.bytes = len(q.rest())
	q.held, q.newest = q.tls+pointerBytes+q.frames[q.head].cost(), q.frames[q.head].batch
	q.tidied = q.head
	q.tidy()
}

func (q *queue) release() {
	if q.box != nil && cap(q.frames) <= maxPooled {
		clear(q.frames)
		*q.box = q.frames[:0]
		spare.Put(q.box)
	}
	q.frames, q.box, q.head, q.sent, q.bytes, q.held, q.tidied, q.newest = nil, nil, 0, 0, 0, q.tls, 0, nil
	q.one[0] = nil
}
