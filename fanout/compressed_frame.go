package fanout

import (
	"bytes"
	"compress/flate"
	"sync"
	"unsafe"

	"trunkline/fanout/conn"
)

// compressedFrame is a frame compressed by permessage-deflate (RFC 7692),
// created on first use and shared by all subscribers: without context takeover
// the bytes are the same for all.
type compressedFrame struct {
	once  sync.Once
	frame *conn.Frame
}

const compressedFrameBytes = int(unsafe.Sizeof(compressedFrame{}))

var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // an error is impossible: the level is valid
	return w
}}

// flushTrailer is the length of the end of a flushed deflate block (00 00 FF
// FF), which RFC 7692 section 7.2.1 removes.
const flushTrailer = 4

func (p *compressedFrame) get(m *frame) *conn.Frame {
	p.once.Do(func() {
		var small bytes.Buffer
		w := deflaters.Get().(*flate.Writer)
		w.Reset(&small)
		_, err := w.Write(m.Payload())
		if err == nil {
			err = w.Flush()
		}

		deflaters.Put(w)
		p.frame = &m.Frame
		if err != nil || small.Len()-flushTrailer >= len(m.Payload()) {
			return // compression does not make it smaller
		}

		p.frame = conn.NewCompressed(m.ID, small.Bytes()[:small.Len()-flushTrailer])
	})

	return p.frame
}
