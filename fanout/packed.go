package fanout

import (
	"bytes"
	"compress/flate"
	"sync"
	"unsafe"

	"trunkline/fanout/conn"
)

// packed is a frame compressed by permessage-deflate (RFC 7692), made by the
// first subscriber that wants it and shared by all. No context is taken over
// from one message to the next, so the same bytes are right for everybody.
type compressedFrame struct {
	once  sync.Once
	frame *conn.Frame
}

const packedBytes = int(unsafe.Sizeof(compressedFrame{}))

var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is a good one
	return w
}}

// flushed is how a flushed deflate stream ends; RFC 7692 leaves it out.
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
		if p.frame = &m.Frame; err != nil || small.Len()-flushTrailer >= len(m.Payload()) {
			return // it is no smaller
		}
		p.frame = conn.NewCompressed(m.ID, small.Bytes()[:small.Len()-flushTrailer])
	})
	return p.frame
}
