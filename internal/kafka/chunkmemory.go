package kafka

import (
	"math/bits"
	"sync"
)

// chunkMemory has memory for chunks by size: powers of two, up to the largest
// batch there can be.
var chunkMemory [bits.UintSize]sync.Pool // *[]byte

const smallestChunk = 12 // bits

// takeMemory returns memory for n bytes.
func takeMemory(n int) *[]byte {
	class := max(bits.Len(uint(max(n, 1)-1)), smallestChunk)
	if m, ok := chunkMemory[class].Get().(*[]byte); ok {
		return m
	}
	m := make([]byte, 0, 1<<class)
	return &m
}

// free returns the chunk's memory.
func (c *chunk) free() {
	if c.memory != nil {
		chunkMemory[bits.Len(uint(cap(*c.memory)-1))].Put(c.memory)
	}
	*c = chunk{}
}
