package kafka

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"trunkline/internal/kafka/wire"
)

// sharedMemory is a buffer shared by several chunks. It is reused after all have
// released it.
type sharedMemory struct {
	bytes []byte
	users atomic.Int32
}

// freeMemory holds free buffers by size: element n has buffers of at least 2^n bytes.
var freeMemory [bits.UintSize]sync.Pool // *sharedMemory

const smallestMemory = 12 // bits

// takeMemory returns a buffer of at least n bytes, with one user.
func takeMemory(n int) *sharedMemory {
	class := max(bits.Len(uint(max(n, 1)-1)), smallestMemory)
	m, ok := freeMemory[class].Get().(*sharedMemory)
	if !ok {
		m = &sharedMemory{bytes: make([]byte, 0, 1<<class)}
	}
	m.users.Store(1)
	return m
}

func (m *sharedMemory) hold() *sharedMemory {
	m.users.Add(1)
	return m
}

func (m *sharedMemory) release() {
	if m.users.Add(-1) == 0 && cap(m.bytes) >= 1<<smallestMemory {
		freeMemory[bits.Len(uint(cap(m.bytes)))-1].Put(m)
	}
}

// chunk holds one partition's part of a fetch response.
type chunk struct {
	batches []byte
	aborted []wire.AbortedTransaction
	memory  *sharedMemory // the buffer that contains batches
}

// shareFrom: a chunk with at least 1/shareFrom of a response keeps the response's
// memory; smaller chunks are copied, so that a slow reader of few records keeps little
// memory.
const shareFrom = 8

func newChunk(f *fetched, response *sharedMemory) chunk {
	c := chunk{aborted: append([]wire.AbortedTransaction(nil), f.aborted...)}
	if len(f.batches) >= len(response.bytes)/shareFrom {
		c.memory, c.batches = response.hold(), f.batches
		return c
	}
	c.memory = takeMemory(len(f.batches))
	c.memory.bytes = append(c.memory.bytes[:0], f.batches...)
	c.batches = c.memory.bytes
	return c
}

// free releases the chunk's memory.
func (c *chunk) free() {
	if c.memory != nil {
		c.memory.release()
	}
	*c = chunk{}
}
