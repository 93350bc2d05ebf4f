package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

// Compressed batches are decompressed in pieces, into a window with the records of one
// Read, so that the claimed decompressed size costs no memory.
const (
	firstWindow = 64 << 10
	mostWindow  = 1 << 20
	// maxUnpackedRecord bounds one record of a compressed batch, and thereby the
	// window if a record needs a larger one.
	maxUnpackedRecord = 16 << 20
	// maxZstdWindow is what RFC 8878 recommends that decoders support; levels
	// above 19 use more.
	maxZstdWindow = 8 << 20
	// maxSnappyRatio is an upper bound of snappy's compression ratio.
	maxSnappyRatio = 32
)

// Codecs in a batch's attributes.
const (
	codecSnappy = 2
	codecZstd   = 4
)

// unpacking is a compressed batch with records left to decode.
type unpacking struct {
	header batchHeader
	out    Decoded // of the whole batch
	in     io.ReadCloser
	ended  bool  // in is exhausted
	left   int   // number of records left
	before int64 // offset delta of the last record
}

// open starts to decompress a batch.
func (d *Decoder) open(h *batchHeader, content []byte, out Decoded) error {
	in, err := unpackReader(h.attributes&attrCompression, content)
	if err != nil {
		return err
	}
	d.unpacking = &unpacking{header: *h, out: out, in: in, left: h.records, before: -1}
	d.parsed = len(d.window)
	return nil
}

// Abandon drops the current compressed batch.
func (d *Decoder) Abandon() {
	if d.unpacking != nil {
		d.unpacking.in.Close()
		d.unpacking = nil
	}
}

// unpack decodes records of the batch until its end or until the window is full. It
// returns a corrupt error; then it has added no record.
func (d *Decoder) unpack(from int64) (Decoded, error) {
	u := d.unpacking
	out := u.out
	out.Before = len(d.Records)
	err := d.unpackRecords(u, from)
	if err != nil {
		d.Records = d.Records[:out.Before]
	}
	if err != nil || u.left == 0 {
		d.Abandon()
		return out, err
	}
	out.More = true
	out.Next = max(from, u.header.base+u.before+1)
	return out, nil
}

func (d *Decoder) unpackRecords(u *unpacking, from int64) error {
	for u.left > 0 {
		if d.Full() {
			return nil
		}
		size, head, whole := recordLength(d.window[d.parsed:])
		if size > maxUnpackedRecord {
			return corrupt("a compressed record larger than 16 MiB")
		}
		if !whole {
			room, err := d.fill(u, head+size)
			if err != nil {
				return err
			}
			if !room {
				return nil
			}
			continue
		}
		record := Reader{B: d.window[d.parsed+head : d.parsed+head+size]}
		if err := d.decodeRecord(&u.header, &record, &u.before, from); err != nil {
			return err
		}
		d.parsed += head + size
		u.left--
	}
	return u.checkEnd(d.window[d.parsed:])
}

// recordLength decodes the length prefix of a record. whole reports whether b has the
// complete record; head is 0 if b does not even have the complete prefix.
func recordLength(b []byte) (size, head int, whole bool) {
	v, n := binary.Varint(b)
	if n < 0 || n > 0 && (v < 0 || v > maxUnpackedRecord) {
		return maxUnpackedRecord + 1, 0, false
	}
	if n == 0 {
		return 0, 0, false
	}
	return int(v), n, len(b) >= n+int(v)
}

// fill decompresses more of the batch into the window, which must hold need bytes
// after the decoded ones. It returns false if there is no space because records not
// yet returned are in the window.
func (d *Decoder) fill(u *unpacking, need int) (bool, error) {
	if u.ended {
		return false, corrupt("a compressed batch that ends within a record")
	}
	if len(d.window) == cap(d.window) || d.parsed+need > cap(d.window) {
		if len(d.Records) > 0 {
			d.wanted = max(min(2*cap(d.window), mostWindow), need)
			return false, nil
		}
		d.wanted = max(need, firstWindow)
		d.moveWindow()
	}
	n, err := u.in.Read(d.window[len(d.window):cap(d.window)])
	d.window = d.window[:len(d.window)+n]
	if errors.Is(err, io.EOF) {
		u.ended = true
		return true, nil
	}
	if err != nil {
		return false, corrupt("a batch that does not unpack")
	}
	return true, nil
}

// moveWindow frees space in the window by dropping the decoded bytes.
func (d *Decoder) moveWindow() {
	rest := d.window[d.parsed:]
	if d.unpacking == nil {
		rest = nil
	}
	if cap(d.window) < d.wanted || cap(d.window) > mostWindow && d.wanted <= mostWindow && len(rest) <= firstWindow {
		d.window = append(make([]byte, 0, max(d.wanted, firstWindow)), rest...)
	} else {
		d.window = d.window[:copy(d.window[:cap(d.window)], rest)]
	}
	d.parsed, d.wanted = 0, 0
}

// checkEnd checks that nothing follows the last record.
func (u *unpacking) checkEnd(rest []byte) error {
	var one [1]byte
	for len(rest) == 0 && !u.ended {
		n, err := u.in.Read(one[:])
		rest = one[:n]
		if errors.Is(err, io.EOF) {
			u.ended = true
		} else if err != nil {
			return corrupt("a batch that does not unpack")
		}
	}
	if len(rest) > 0 {
		return corrupt("a batch with data after its last record")
	}
	return nil
}

// unpackReader returns a reader that decompresses content.
func unpackReader(codec int16, content []byte) (io.ReadCloser, error) {
	switch codec {
	case codecSnappy:
		return &snappyReader{content: content}, nil
	case codecZstd:
		return newZstdReader(content)
	}
	c := compress.Compression(codec).Codec()
	if c == nil {
		return nil, corrupt("an unknown compression")
	}
	return c.NewReader(bytes.NewReader(content)), nil
}

// zstdReader uses a decoder from the pool until it is closed.
type zstdReader struct{ *zstd.Decoder }

var zstdDecoders sync.Pool // *zstd.Decoder

func newZstdReader(content []byte) (io.ReadCloser, error) {
	d, ok := zstdDecoders.Get().(*zstd.Decoder)
	if !ok {
		var err error
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
	}
	if err := d.Reset(bytes.NewReader(content)); err != nil {
		return nil, corrupt("a batch that does not unpack")
	}
	return zstdReader{d}, nil
}

// Close returns the decoder to the pool.
func (r zstdReader) Close() error {
	if r.Reset(nil) == nil {
		zstdDecoders.Put(r.Decoder)
	}
	return nil
}

// xerialHeader is the start of the framing of snappy in Java clients; two version
// numbers and blocks with a length prefix follow it.
var xerialHeader = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

// snappyReader decompresses snappy, one block at a time; unframed content is one
// block.
type snappyReader struct {
	content []byte
	begun   bool
	framed  bool
	block   []byte // decompressed
	left    []byte // unread part of block
}

// Read implements io.Reader.
func (r *snappyReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		packed, err := r.next()
		if err != nil {
			return 0, err
		}
		size, err := snappy.DecodedLen(packed)
		if err != nil || size > maxSnappyRatio*len(packed) {
			return 0, corrupt("a snappy block of impossible length")
		}
		if cap(r.block) < size {
			r.block = make([]byte, size)
		}
		if r.left, err = snappy.Decode(r.block[:size], packed); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// next returns the next compressed block.
func (r *snappyReader) next() ([]byte, error) {
	if !r.begun {
		r.begun = true
		if r.framed = len(r.content) >= 16 && bytes.HasPrefix(r.content, xerialHeader); r.framed {
			r.content = r.content[16:]
		}
	}
	if len(r.content) == 0 {
		return nil, io.EOF
	}
	if !r.framed {
		packed := r.content
		r.content = nil
		return packed, nil
	}
	if len(r.content) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	size := binary.BigEndian.Uint32(r.content)
	if uint64(size) > uint64(len(r.content)-4) {
		return nil, io.ErrUnexpectedEOF
	}
	packed := r.content[4 : 4+size]
	r.content = r.content[4+size:]
	return packed, nil
}

// Close implements io.Closer.
func (r *snappyReader) Close() error { return nil }
