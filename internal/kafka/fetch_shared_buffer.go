package kafka

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/internal/kafka/wire"
)

// sharedBuffer is a buffer shared by several chunks. It is reused after all have
// released it.
type sharedBuffer struct {
	bytes []byte
	users atomic.Int32
}

// bufferPools holds free buffers by size: element n has buffers of at least 2^n bytes.
var bufferPools [bits.UintSize]sync.Pool // *sharedBuffer

const minBufferBits = 12 // bits

// getBuffer returns a buffer of at least n bytes, with one user.
func getBuffer(n int) *sharedBuffer {
	class := max(bits.Len(uint(max(n, 1)-1)), minBufferBits)
	b, ok := bufferPools[class].Get().(*sharedBuffer)
	if !ok {
		b = &sharedBuffer{bytes: make([]byte, 0, 1<<class)}
	}
	b.users.Store(1)
	return b
}

func (b *sharedBuffer) retain() *sharedBuffer {
	b.users.Add(1)
	return b
}

func (b *sharedBuffer) release() {
	if b.users.Add(-1) == 0 && cap(b.bytes) >= 1<<minBufferBits {
		// The class is rounded down here and up in getBuffer, so a buffer is never smaller than asked for.
		bufferPools[bits.Len(uint(cap(b.bytes)))-1].Put(b)
	}
}

// chunk holds one partition's part of a fetch response.
type chunk struct {
	batches []byte
	aborted []wire.AbortedTransaction
	buffer  *sharedBuffer // the buffer that contains batches
	idleAt  time.Time     // see subscription.lastIdleAt, as of before the chunk
}

// shareDivisor is the divisor of a response's size from which a chunk shares the
// response's buffer: smaller chunks are copied, so that a slow reader of few records keeps little
// memory.
const shareDivisor = 8

func newChunk(f *fetchedPartition, response *sharedBuffer) chunk {
	c := chunk{aborted: append([]wire.AbortedTransaction(nil), f.aborted...)}
	if len(f.batches) >= len(response.bytes)/shareDivisor {
		c.buffer, c.batches = response.retain(), f.batches
		return c
	}
	c.buffer = getBuffer(len(f.batches))
	c.buffer.bytes = append(c.buffer.bytes[:0], f.batches...)
	c.batches = c.buffer.bytes
	return c
}

// free releases the chunk's memory.
func (c *chunk) free() {
	if c.buffer != nil {
		c.buffer.release()
	}
	*c = chunk{}
}
