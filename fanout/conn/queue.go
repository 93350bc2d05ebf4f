package conn

import (
	"iter"
	"sync"
)

// Queue holds the frames that wait for one client, in order. A frame of a block
// is shared: the queue refers to it, and thereby keeps the whole block in memory.
// The queue counts what it keeps, and Tidy copies frames out of blocks of which
// they are a small part. An empty queue has no memory of its own. The zero value
// is empty; a Queue must not be copied or used by two goroutines at once.
type Queue struct {
	frames    []*Frame
	inline    [1]*Frame // backs frames while there is only one
	pooled    *[]*Frame // backs frames otherwise; it returns to pointerSlices without an allocation
	head      int       // frames before head are gone
	sent      int       // bytes of frames[head] that are already out
	bytes     int       // waiting, all frames
	heldBytes int       // see Held
	newest    *Block    // of the last frame; nil: it has none, or nothing waits
	tidied    int       // frames before it have been looked at by Tidy
	spilled   int       // see SetSpilled; a part of held
}

// pointerSlices are shared by all queues, so that a client at rest has none.
var pointerSlices = sync.Pool{New: func() any { s := make([]*Frame, 0, 32); return &s }}

// Larger slices are left to the garbage collector: one burst must not pin them.
const maxPooled = 1024

// Push adds f at the end.
func (q *Queue) Push(f *Frame) {
	switch {
	case q.frames == nil:
		q.frames = q.inline[:0]
	case q.pooled == nil:
		q.pooled = pointerSlices.Get().(*[]*Frame)
		q.frames = append((*q.pooled)[:0], q.frames...)
		q.inline[0] = nil // it would keep its block as long as anything waits
	}
	q.frames = append(q.frames, f)
	if q.pooled != nil && cap(q.frames) != cap(*q.pooled) {
		*q.pooled = q.frames[:0] // the smaller slice would keep its frames
	}
	q.bytes += len(f.Wire)
	q.heldBytes += pointerBytes
	if f.block == nil || f.block != q.newest {
		q.heldBytes += f.cost()
		q.newest = f.block
	}
}

// Held returns how many bytes of memory the queue keeps, at most: a block counts
// once for each run of its frames.
func (q *Queue) Held() int { return q.heldBytes }

// Waiting returns the bytes that are still to be sent.
func (q *Queue) Waiting() int { return q.bytes }

// SetSpilled sets the bytes of TLS records that the socket did not take.
func (q *Queue) SetSpilled(bytes int) {
	q.heldBytes += bytes - q.spilled
	q.spilled = bytes
}

// CountHeld returns the memory that the queue keeps without the blocks that
// CountHeld has already counted, in this or another queue, with the same number.
// One goroutine at a time may count.
func (q *Queue) CountHeld(count uint64) int {
	held := q.spilled
	for _, f := range q.frames[q.head:] {
		held += pointerBytes
		switch {
		case f.block == nil:
			held += f.cost()
		case f.block.counted != count:
			f.block.counted = count
			held += f.cost()
		}
	}
	return held
}

// Tidy copies frames out of blocks that are kept in memory for a small part of
// their bytes. Each frame is looked at once, so the cost is that of the copies.
func (q *Queue) Tidy() {
	end := len(q.frames)
	at := max(q.head, q.tidied)
	for at > q.head && at < end && q.frames[at].sharesBlock(q.frames[at-1]) {
		at++ // of a run that was left in its block
	}
	sparse := at // frames from here to at are to be copied
	for at < end {
		run, size := at, 0
		for ; at < end && (at == run || q.frames[at].sharesBlock(q.frames[run])); at++ {
			size += len(q.frames[at].Wire) + FrameBytes
		}
		if b := q.frames[run].block; b == nil || 2*(size+BlockBytes) > b.Held {
			q.copyOut(sparse, run)
			sparse = at
		}
	}
	q.copyOut(sparse, end)
	q.tidied = end
}

// copyOut puts copies of frames[from:to], which are whole runs, into a block of
// their own.
func (q *Queue) copyOut(from, to int) {
	if from == to {
		return
	}
	size := 0
	for i, f := range q.frames[from:to] {
		size += len(f.Wire)
		if i == 0 || !f.sharesBlock(q.frames[from+i-1]) {
			q.heldBytes -= f.cost()
		}
	}
	b := &copies{frames: make([]Frame, 0, to-from)}
	b.Allocate(size)
	for i, f := range q.frames[from:to] {
		start := len(b.bytes)
		b.bytes = append(b.bytes, f.Wire...)
		b.frames = append(b.frames, Frame{Wire: b.bytes[start:], ID: f.ID, block: &b.Block, at: uint32(start), header: f.header})
		q.frames[from+i] = &b.frames[i]
	}
	b.Held = BlockBytes + cap(b.bytes) + cap(b.frames)*FrameBytes
	q.heldBytes += b.Held
	if to == len(q.frames) {
		q.newest = &b.Block
	}
}

// copies is a block with its frames.
type copies struct {
	Block
	frames []Frame
}

// Empty reports whether no frame waits.
func (q *Queue) Empty() bool { return q.head == len(q.frames) }

// Rest returns the part of the first frame that is still to be sent.
func (q *Queue) Rest() []byte { return q.frames[q.head].Wire[q.sent:] }

// What lies together in memory is copied only when it is smaller than this: a
// large write gains little from being larger.
const copyBelow = 16 << 10

// Gather returns up to max bytes that wait, as one slice: of the shared block
// itself as far as frames lie one behind the other, else a copy in scratch.
func (q *Queue) Gather(scratch []byte, max int) []byte {
	first := q.frames[q.head]
	size, i := len(q.Rest()), q.head+1
	for ; i < len(q.frames) && size < max && q.frames[i].follows(q.frames[i-1]); i++ {
		size += len(q.frames[i].Wire)
	}
	var out []byte
	if first.block != nil {
		start := int(first.at) + q.sent
		out = first.block.bytes[start : start+size]
	} else {
		out = q.Rest()
	}
	if len(out) >= copyBelow || len(out) >= max || i == len(q.frames) {
		return out[:min(len(out), max)]
	}
	out = append(scratch[:0], out...)
	for ; i < len(q.frames) && len(out) < max; i++ {
		next := q.frames[i].Wire
		out = append(out, next[:min(len(next), max-len(out))]...)
	}
	return out
}

// Advance takes n sent bytes off the front. It returns the id of the last message
// that is out completely, 0 when none was finished.
func (q *Queue) Advance(n int) (last int64) {
	if n == q.bytes {
		for i := len(q.frames) - 1; i >= q.head && last == 0; i-- {
			last = q.frames[i].ID
		}
		q.Clear()
		return last
	}
	q.bytes -= n
	q.sent += n
	for q.sent >= len(q.frames[q.head].Wire) { // not of the last one
		f := q.frames[q.head]
		q.sent -= len(f.Wire)
		if f.ID != 0 {
			last = f.ID
		}
		q.frames[q.head] = nil
		q.head++
		q.heldBytes -= pointerBytes
		if !f.sharesBlock(q.frames[q.head]) {
			q.heldBytes -= f.cost()
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

// Drop removes all frames except a partly sent one. It returns the id of that
// one, 0 when there is none or it is not a message.
func (q *Queue) Drop() (id int64) {
	if q.sent == 0 || q.Empty() {
		q.Clear()
		return 0
	}
	q.DropTail()
	return q.frames[q.head].ID
}

// IDs yields the ids of the messages that wait, in their order.
func (q *Queue) IDs() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, f := range q.frames[q.head:] {
			if f.ID != 0 && !yield(f.ID) {
				return
			}
		}
	}
}

// Contains reports whether the message waits.
func (q *Queue) Contains(id int64) bool {
	for waiting := range q.IDs() {
		if waiting == id {
			return true
		}
	}
	return false
}

// DropTail removes all frames but the first, which may be partly sent.
func (q *Queue) DropTail() {
	if q.Empty() {
		return
	}
	clear(q.frames[q.head+1:])
	q.frames = q.frames[:q.head+1]
	q.bytes = len(q.Rest())
	q.heldBytes, q.newest = q.spilled+pointerBytes+q.frames[q.head].cost(), q.frames[q.head].block
	q.tidied = q.head
	q.Tidy()
}

// Clear removes all frames.
func (q *Queue) Clear() {
	if q.pooled != nil && cap(q.frames) <= maxPooled {
		clear(q.frames)
		*q.pooled = q.frames[:0]
		pointerSlices.Put(q.pooled)
	}
	q.frames, q.pooled, q.head, q.sent, q.bytes, q.heldBytes, q.tidied, q.newest = nil, nil, 0, 0, 0, q.spilled, 0, nil
	q.inline[0] = nil
}
