package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

// Compressed batches are decompressed in pieces, into a window with the records of one
// call of kafka.Reader.Read, so that the claimed decompressed size costs no memory.
const (
	minWindowBytes = 64 << 10
	maxWindowBytes = 1 << 20
	// maxDecompressedRecordBytes bounds one record of a compressed batch, and thereby the
	// window if a record needs a larger one. Of a larger record only the first bytes are
	// decoded (Record.Oversized).
	maxDecompressedRecordBytes = 16 << 20
	oversizedHead              = 4 << 10
	// maxZstdWindowBytes is what RFC 8878 recommends that decoders support; levels
	// above 19 use more.
	maxZstdWindowBytes = 8 << 20
	// maxSnappyRatio is an upper bound of snappy's compression ratio.
	maxSnappyRatio = 32
)

// Codecs in a batch's attributes.
const (
	codecSnappy = 2
	codecZstd   = 4
)

// compressedBatch is a compressed batch with records left to decode.
type compressedBatch struct {
	header    batchHeader
	decoded   Decoded // of the whole batch
	content   io.ReadCloser
	exhausted bool  // content is read to its end
	remaining int   // number of records left
	lastDelta int64 // offset delta of the last record
}

// openCompressed starts to decompress a batch.
func (d *Decoder) openCompressed(h *batchHeader, content []byte, out Decoded) error {
	in, err := newDecompressor(h.attributes&attrCompression, content)
	if err != nil {
		return err
	}
	d.compressed = &compressedBatch{header: *h, decoded: out, content: in, remaining: h.recordCount, lastDelta: -1}
	// The records of earlier batches may still refer to the window: it is continued, not used again.
	d.parsedBytes = len(d.window)
	return nil
}

// AbandonBatch drops the current compressed batch.
func (d *Decoder) AbandonBatch() {
	if d.compressed != nil {
		d.compressed.content.Close()
		d.compressed = nil
	}
}

// decodeCompressed decodes records of the batch until its end or until the window is full. It
// returns a corrupt error; then it has added no record.
func (d *Decoder) decodeCompressed(from int64) (Decoded, error) {
	cb := d.compressed
	out := cb.decoded
	out.RecordsBefore = len(d.Records)
	err := d.decodeCompressedRecords(cb, from)
	if err != nil {
		d.Records = d.Records[:out.RecordsBefore]
	}
	if err != nil || cb.remaining == 0 {
		d.AbandonBatch()
		return out, err
	}

	out.More = true
	out.Next = max(from, cb.header.baseOffset+cb.lastDelta+1)
	return out, nil
}

func (d *Decoder) decodeCompressedRecords(cb *compressedBatch, from int64) error {
	for cb.remaining > 0 {
		// Between two records, so that the next call goes on exactly here.
		if d.Full() {
			return nil
		}

		size, head, complete := recordLength(d.window[d.parsedBytes:])
		if size < 0 {
			return corruptError("a record of impossible length")
		}

		if size > maxDecompressedRecordBytes {
			passed, err := d.passOversized(cb, size, head, from)
			if err != nil {
				return err
			}

			if !passed {
				return nil
			}

			continue
		}

		if !complete {
			hasRoom, err := d.fillWindow(cb, head+size)
			if err != nil {
				return err
			}

			if !hasRoom {
				return nil
			}

			continue
		}

		record := FieldReader{B: d.window[d.parsedBytes+head : d.parsedBytes+head+size]}
		if err := d.decodeRecord(&cb.header, &record, &cb.lastDelta, from); err != nil {
			return err
		}

		d.parsedBytes += head + size
		cb.remaining--
	}

	return cb.checkEnd(d.window[d.parsedBytes:])
}

// passOversized decodes the first bytes of a record whose size is head and size, and
// decompresses the rest without keeping it. It returns false if there is no space
// because records not yet returned are in the window.
func (d *Decoder) passOversized(cb *compressedBatch, size, head int, from int64) (bool, error) {
	for len(d.window)-d.parsedBytes < head+oversizedHead {
		hasRoom, err := d.fillWindow(cb, head+oversizedHead)
		if err != nil || !hasRoom {
			return false, err
		}
	}

	unread := int64(d.parsedBytes + head + size - len(d.window))
	r := FieldReader{B: d.window[d.parsedBytes+head:]}
	if err := d.decodeOversized(&cb.header, &r, &cb.lastDelta, from, size); err != nil {
		return false, err
	}

	d.window = d.window[:d.parsedBytes]
	n, err := io.CopyN(io.Discard, cb.content, unread)
	if n < unread {
		cb.exhausted = errors.Is(err, io.EOF)
		return false, corruptError("a compressed batch that ends within a record")
	}

	cb.remaining--
	return true, nil
}

// recordLength decodes the length prefix of a record, -1 if it is impossible. complete
// reports whether b has the complete record; head is 0 if b does not even have the
// complete prefix.
func recordLength(b []byte) (size, head int, complete bool) {
	v, n := binary.Varint(b)
	if n < 0 || n > 0 && (v < 0 || v > math.MaxInt32) {
		return -1, 0, false
	}
	if n == 0 {
		return 0, 0, false
	}
	return int(v), n, len(b) >= n+int(v)
}

// fillWindow decompresses more of the batch into the window, which must hold size bytes
// after the decoded ones. It returns false if there is no space because records not
// yet returned are in the window.
func (d *Decoder) fillWindow(cb *compressedBatch, size int) (bool, error) {
	if cb.exhausted {
		return false, corruptError("a compressed batch that ends within a record")
	}

	if len(d.window) == cap(d.window) || d.parsedBytes+size > cap(d.window) {
		// Moving the window would move what these records refer to: they are returned first.
		if len(d.Records) > 0 {
			// The next Reset makes it larger: a window that was too small once is likely too small again.
			d.wantedWindow = max(min(2*cap(d.window), maxWindowBytes), size)
			return false, nil
		}
		d.wantedWindow = max(size, minWindowBytes)
		d.moveWindow()
	}

	n, err := cb.content.Read(d.window[len(d.window):cap(d.window)])
	d.window = d.window[:len(d.window)+n]
	if errors.Is(err, io.EOF) {
		cb.exhausted = true
		return true, nil
	}
	if err != nil {
		return false, corruptError("a batch that does not unpack")
	}

	return true, nil
}

// moveWindow frees space in the window by dropping the decoded bytes.
func (d *Decoder) moveWindow() {
	rest := d.window[d.parsedBytes:]
	if d.compressed == nil {
		rest = nil
	}

	if cap(d.window) < d.wantedWindow ||
		cap(d.window) > maxWindowBytes && d.wantedWindow <= maxWindowBytes && len(rest) <= minWindowBytes {
		d.window = append(make([]byte, 0, max(d.wantedWindow, minWindowBytes)), rest...)
	} else {
		d.window = d.window[:copy(d.window[:cap(d.window)], rest)]
	}

	d.parsedBytes, d.wantedWindow = 0, 0
}

// checkEnd checks that nothing follows the last record.
func (cb *compressedBatch) checkEnd(rest []byte) error {
	var buffer [1]byte
	for len(rest) == 0 && !cb.exhausted {
		n, err := cb.content.Read(buffer[:])
		rest = buffer[:n]
		if errors.Is(err, io.EOF) {
			cb.exhausted = true
		} else if err != nil {
			return corruptError("a batch that does not unpack")
		}
	}

	if len(rest) > 0 {
		return corruptError("a batch with data after its last record")
	}

	return nil
}

// newDecompressor returns a reader that decompresses content.
func newDecompressor(codec int16, content []byte) (io.ReadCloser, error) {
	switch codec {
	case codecSnappy:
		return &snappyReader{content: content}, nil
	case codecZstd:
		return newZstdReader(content)
	}

	c := compress.Compression(codec).Codec()
	if c == nil {
		return nil, corruptError("an unknown compression")
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
		d, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindowBytes))
		if err != nil {
			return nil, err
		}
	}

	if err := d.Reset(bytes.NewReader(content)); err != nil {
		return nil, corruptError("a batch that does not unpack")
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
	content       []byte
	headerChecked bool
	framed        bool
	block         []byte // decompressed
	unread        []byte // unread part of block
}

// Read implements io.Reader.
func (r *snappyReader) Read(p []byte) (int, error) {
	for len(r.unread) == 0 {
		packed, err := r.next()
		if err != nil {
			return 0, err
		}

		size, err := snappy.DecodedLen(packed)
		// The size is claimed by the content: without the bound a few bytes could claim gigabytes.
		if err != nil || size > maxSnappyRatio*len(packed) {
			return 0, corruptError("a snappy block of impossible length")
		}

		if cap(r.block) < size {
			r.block = make([]byte, size)
		}

		r.unread, err = snappy.Decode(r.block[:size], packed)
		if err != nil {
			return 0, err
		}
	}

	n := copy(p, r.unread)
	r.unread = r.unread[n:]
	return n, nil
}

// next returns the next compressed block.
func (r *snappyReader) next() ([]byte, error) {
	if !r.headerChecked {
		r.headerChecked = true
		r.framed = len(r.content) >= 16 && bytes.HasPrefix(r.content, xerialHeader)
		if r.framed {
			r.content = r.content[16:]
		}
	}

	if len(r.content) == 0 {
		return nil, io.EOF
	}

	if !r.framed {
		block := r.content
		r.content = nil
		return block, nil
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
