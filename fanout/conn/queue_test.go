package conn

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// testBlock is what one read of a log gives.
type testBlock struct {
	Block
	frames []Frame
}

func newTestBlock(count, size int) *testBlock {
	b := &testBlock{frames: make([]Frame, 0, count)}
	b.Allocate(count * (size + MaxHeader))
	for i := range count {
		b.frames = append(b.frames, b.AppendMessage(int64(i+1), bytes.Repeat([]byte{byte('a' + i%26)}, size)))
	}
	b.RetainedBytes = BlockBytes + b.Cap() + count*FrameBytes
	return b
}

// The queue's count is never below what its frames keep in memory, and what it
// sends is what was pushed, wherever frames are copied out of their blocks.
func TestQueueCountsWhatItHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		var q Queue
		var want, sent []byte
		var blocks []*testBlock

		for range 4 {
			blocks = append(blocks, newTestBlock(1+random.IntN(60), 1000))
		}

		scratch := make([]byte, 0, WriteBytes)
		for range 300 {
			switch random.IntN(5) {
			case 0:
				q.Push(NewText([]byte("cursor")))
				want = append(want, q.frames[len(q.frames)-1].Wire...)
			case 1, 2:
				b := blocks[random.IntN(len(blocks))]
				from := random.IntN(len(b.frames))
				for i := from; i < min(len(b.frames), from+1+random.IntN(12)); i++ {
					q.Push(&b.frames[i])
					want = append(want, b.frames[i].Wire...)
				}
			case 3:
				q.CopySparseBlocks()
			case 4:
				if !q.Empty() {
					part := q.Gather(scratch, 1+random.IntN(20<<10))
					part = part[:random.IntN(len(part)+1)]
					sent = append(sent, part...)
					q.Advance(len(part))
				}
			}

			checkHeld(t, &q)
		}

		for !q.Empty() {
			part := q.Gather(scratch, WriteBytes)
			sent = append(sent, part...)
			q.Advance(len(part))
		}

		if q.held != 0 {
			t.Fatalf("an empty queue holds %d bytes", q.held)
		}
		if !slices.Equal(sent, want) {
			t.Fatalf("%d bytes were sent, %d pushed, or they differ", len(sent), len(want))
		}
	}
}

func checkHeld(t *testing.T, q *Queue) {
	t.Helper()
	least, seen := 0, map[*Block]bool{}
	for _, f := range q.frames[q.head:] {
		switch {
		case f.block == nil:
			least += cap(f.Wire)
		case !seen[f.block]:
			seen[f.block] = true
			least += f.block.RetainedBytes
		}
	}

	if q.held < least {
		t.Fatalf("the queue counts %d bytes and keeps %d", q.held, least)
	}
}
