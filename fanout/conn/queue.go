package conn

import (
	"iter"
	"sync"
)

// Queue holds the frames that wait for one client, in order. It refers to shared
// blocks, and thereby keeps each whole block in memory. It counts the memory that it
// keeps, and CopySparseBlocks copies frames out of blocks of which they are a small part. An empty
// queue allocates nothing. The zero value is an empty queue; a Queue must not be
// copied or used concurrently.
type Queue struct {
	frames         []*Frame
	inline         [1]*Frame // backs frames while there is only one
	pooled         *[]*Frame // backs frames otherwise; a pointer, so that its return to pointerSlices does not allocate
	head           int       // frames before head are sent or dropped
	sent           int       // bytes of frames[head] that have been sent
	bytes          int       // bytes waiting, of all frames
	held           int       // see HeldBytes
	newest         *Block    // block of the last frame; nil: it has none, or the queue is empty
	checkedForCopy int       // frames before it have been checked by CopySparseBlocks
	spilled        int       // see SetSpilled; a part of held
}

// pointerSlices is shared by all queues, so that an idle client has no slice.
var pointerSlices = sync.Pool{New: func() any { s := make([]*Frame, 0, 32); return &s }}

// maxPooledFrames bounds the slices returned to the pool, so that one burst does not keep
// large slices allocated.
const maxPooledFrames = 1024

// Push adds f at the end.
func (q *Queue) Push(f *Frame) {
	switch {
	case q.frames == nil:
		q.frames = q.inline[:0]
	case q.pooled == nil:
		q.pooled = pointerSlices.Get().(*[]*Frame)
		q.frames = append((*q.pooled)[:0], q.frames...)
		q.inline[0] = nil // it would keep its block in memory while frames wait
	}

	q.frames = append(q.frames, f)
	if q.pooled != nil && cap(q.frames) != cap(*q.pooled) {
		*q.pooled = q.frames[:0] // the smaller slice would keep its frames in memory
	}

	q.bytes += len(f.Wire)
	q.held += pointerBytes
	if f.block == nil || f.block != q.newest {
		q.held += f.cost()
		q.newest = f.block
	}
}

// HeldBytes returns an upper bound of the bytes of memory that the queue keeps: a block
// counts once for each run of its frames.
func (q *Queue) HeldBytes() int { return q.held }

// WaitingBytes returns the bytes that are still to be sent.
func (q *Queue) WaitingBytes() int { return q.bytes }

// SetSpilled sets the bytes of TLS records that the socket did not take.
func (q *Queue) SetSpilled(bytes int) {
	q.held += bytes - q.spilled
	q.spilled = bytes
}

// CountHeld returns the memory that the queue keeps, without the blocks that an
// earlier call with the same number has counted, in this or another queue. Calls must
// not be concurrent.
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

// CopySparseBlocks copies frames out of blocks that are kept in memory for a small part of their
// bytes. Each frame is checked once, so the cost is that of the copies.
func (q *Queue) CopySparseBlocks() {
	end := len(q.frames)
	at := max(q.head, q.checkedForCopy)
	for at > q.head && at < end && q.frames[at].sharesBlock(q.frames[at-1]) {
		at++ // part of a run that stays in its block
	}

	sparse := at // frames[sparse:at] are to be copied
	for at < end {
		run, size := at, 0
		for ; at < end && (at == run || q.frames[at].sharesBlock(q.frames[run])); at++ {
			size += len(q.frames[at].Wire) + FrameBytes
		}

		b := q.frames[run].block
		if b == nil || 2*(size+BlockBytes) > b.RetainedBytes {
			q.copyOut(sparse, run)
			sparse = at
		}
	}

	q.copyOut(sparse, end)
	q.checkedForCopy = end
}

// copyOut copies frames[from:to], which consist of whole runs, into a new block.
func (q *Queue) copyOut(from, to int) {
	if from == to {
		return
	}

	size := 0
	for i, f := range q.frames[from:to] {
		size += len(f.Wire)
		if i == 0 || !f.sharesBlock(q.frames[from+i-1]) {
			q.held -= f.cost()
		}
	}

	b := &copiedFrames{frames: make([]Frame, 0, to-from)}
	b.Allocate(size)
	for i, f := range q.frames[from:to] {
		start := len(b.bytes)
		b.bytes = append(b.bytes, f.Wire...)
		b.frames = append(b.frames,
			Frame{Wire: b.bytes[start:], ID: f.ID, block: &b.Block, blockOffset: uint32(start),
				headerLength: f.headerLength})
		q.frames[from+i] = &b.frames[i]
	}

	b.RetainedBytes = BlockBytes + cap(b.bytes) + cap(b.frames)*FrameBytes
	q.held += b.RetainedBytes
	if to == len(q.frames) {
		q.newest = &b.Block
	}
}

// copiedFrames is a block with its frames.
type copiedFrames struct {
	Block
	frames []Frame
}

// Empty reports whether no frame waits.
func (q *Queue) Empty() bool { return q.head == len(q.frames) }

// Rest returns the unsent part of the first frame.
func (q *Queue) Rest() []byte { return q.frames[q.head].Wire[q.sent:] }

// copyBelow bounds the copying of adjacent bytes to join small writes: a large write
// gains little from being larger.
const copyBelow = 16 << 10

// Gather returns up to max unsent bytes as one slice: of the shared block itself if
// the frames are adjacent, or else a copy in scratch.
func (q *Queue) Gather(scratch []byte, max int) []byte {
	first := q.frames[q.head]
	size, i := len(q.Rest()), q.head+1
	for ; i < len(q.frames) && size < max && q.frames[i].follows(q.frames[i-1]); i++ {
		size += len(q.frames[i].Wire)
	}

	var out []byte
	if first.block != nil {
		start := int(first.blockOffset) + q.sent
		out = first.block.bytes[start : start+size]
	} else {
		out = q.Rest()
	}

	// Enough for one write, or nothing to join it with.
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

// Advance removes n sent bytes from the front. It returns the id of the last message
// that was sent completely, 0 if none was.
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
	for q.sent >= len(q.frames[q.head].Wire) { // ends before the last frame: less than everything was sent
		f := q.frames[q.head]
		q.sent -= len(f.Wire)
		if f.ID != 0 {
			last = f.ID
		}

		q.frames[q.head] = nil
		q.head++
		q.held -= pointerBytes

		if !f.sharesBlock(q.frames[q.head]) {
			q.held -= f.cost()
		}
	}

	if q.head >= 64 && q.head*2 >= len(q.frames) {
		left := copy(q.frames, q.frames[q.head:])
		clear(q.frames[left:])
		q.checkedForCopy = max(0, q.checkedForCopy-q.head)
		q.frames, q.head = q.frames[:left], 0
	}

	return last
}

// Drop removes all frames except a partly sent one, and returns the id of that frame;
// 0 if there is none or it is not a message.
func (q *Queue) Drop() (id int64) {
	if q.sent == 0 || q.Empty() {
		q.Clear()
		return 0
	}
	q.DropTail()
	return q.frames[q.head].ID
}

// IDs yields the ids of the waiting messages in order.
func (q *Queue) IDs() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, f := range q.frames[q.head:] {
			if f.ID != 0 && !yield(f.ID) {
				return
			}
		}
	}
}

// Contains reports whether the message is in the queue.
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
	q.held, q.newest = q.spilled+pointerBytes+q.frames[q.head].cost(), q.frames[q.head].block
	q.checkedForCopy = q.head
	q.CopySparseBlocks()
}

// Clear removes all frames.
func (q *Queue) Clear() {
	if q.pooled != nil && cap(q.frames) <= maxPooledFrames {
		clear(q.frames)
		*q.pooled = q.frames[:0]
		pointerSlices.Put(q.pooled)
	}
	q.frames, q.pooled, q.newest = nil, nil, nil
	q.head, q.sent, q.bytes, q.held, q.checkedForCopy = 0, 0, 0, q.spilled, 0
	q.inline[0] = nil
}
