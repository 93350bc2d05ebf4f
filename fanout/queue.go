package fanout

import "sync"

// queue is what waits for one subscriber: references to shared frames, in
// order. It holds no memory while empty.
type queue struct {
	frames []*frame
	one    [1]*frame // what frames lie in while there is only one
	box    *[]*frame // what they lie in otherwise, to give it back without an allocation
	head   int       // frames before head are gone
	sent   int       // bytes of frames[head] that are already out
	bytes  int       // waiting, all frames
}

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
	}
	q.frames = append(q.frames, f)
	q.bytes += len(f.wire)
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
	q.bytes -= n
	q.sent += n
	for q.head < len(q.frames) && q.sent >= len(q.frames[q.head].wire) {
		f := q.frames[q.head]
		q.sent -= len(f.wire)
		if !f.control {
			last = f
		}
		q.frames[q.head] = nil
		q.head++
	}
	switch {
	case q.empty():
		q.release()
	case q.head >= 64 && q.head*2 >= len(q.frames):
		kept := copy(q.frames, q.frames[q.head:])
		clear(q.frames[kept:])
		q.frames, q.head = q.frames[:kept], 0
	}
	return last
}

// drop forgets everything but what must be finished: a frame that is partly
// out.
func (q *queue) drop() {
	if q.sent == 0 || q.empty() {
		q.bytes = 0
		q.release()
		return
	}
	clear(q.frames[q.head+1:])
	q.frames = q.frames[:q.head+1]
	q.bytes = len(q.rest())
}

func (q *queue) release() {
	if q.box != nil && cap(q.frames) <= maxPooled {
		clear(q.frames)
		*q.box = q.frames[:0]
		spare.Put(q.box)
	}
	q.frames, q.box, q.head, q.sent = nil, nil, 0, 0
	q.one[0] = nil
}
