package envelope

import "sync"

// buffers are the buffers of one stream: one chunk of audio and one sealed chunk, each
// with a byte to look ahead. They are pooled, because clearing 128 KiB for every stream
// would cost as much as sealing the first chunks of a short recording. release wipes the
// audio.
type buffers struct {
	plain  [ChunkSize + maxOverhead]byte
	sealed [ChunkSize + maxOverhead + 1]byte
}

const maxOverhead = cbcOverhead

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func getBuffers() *buffers { return bufferPool.Get().(*buffers) }

func (b *buffers) release() {
	clear(b.plain[:])
	bufferPool.Put(b)
}
