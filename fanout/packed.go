package fanout

import (
	"bytes"
	"compress/flate"
	"sync"
	"unsafe"
)

// packed is a frame compressed by permessage-deflate (RFC 7692), made by the
// first subscriber that wants it and shared by all. No context is taken over
// from one message to the next, so the same bytes are right for everybody.
type packed struct {
	once  sync.Once
	frame *frame // the only one of its batch
}

const packedBytes = int(unsafe.Sizeof(packed{}))

var deflaters = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed) // the level is a good one
	return w
}}

// compressedBit is RSV1, which says that the message is compressed.
const compressedBit = 0x40

// flushed is how a flushed deflate stream ends; RFC 7692 leaves it out.
const flushed = 4

func (p *packed) of(m *frame) *frame {
	p.once.Do(func() {
		var small bytes.Buffer
		w := deflaters.Get().(*flate.Writer)
		w.Reset(&small)
		_, err := w.Write(m.payload())
		if err == nil {
			err = w.Flush()
		}
		deflaters.Put(w)
		if p.frame = m; err != nil || small.Len()-flushed >= len(m.payload()) {
			return // it is no smaller
		}
		payload := small.Bytes()[:small.Len()-flushed]
		wire := appendFrameHeader(make([]byte, 0, len(payload)+maxFrameHeader), opText|compressedBit, len(payload))
		header := len(wire)
		b := &batch{slab: append(wire, payload...), frames: make([]frame, 1)}
		b.held = batchBytes + cap(b.slab) + frameBytes
		p.frame = &b.frames[0]
		*p.frame = frame{wire: b.slab, batch: b, header: uint8(header),
			part: m.part, class: m.class, account: m.account, id: m.id, offset: m.offset, source: m.source}
	})
	return p.frame
}
