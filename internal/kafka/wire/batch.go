package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// A record batch, format version 2, begins with this header:
//
//	 0 base offset int64        43 producer id int64
//	 8 length int32, of what    51 producer epoch int16
//	   follows                  53 base sequence int32
//	12 leader epoch int32       57 record count int32
//	16 magic int8, 2            61 records
//	17 crc32c uint32, of what
//	   follows
//	21 attributes int16
//	23 last offset delta int32
//	27 first timestamp int64
//	35 max timestamp int64
const (
	batchLengthEnd  = 12
	batchCRCEnd     = 21
	batchMagic      = 2
	batchMinContent = BatchHeaderBytes - batchLengthEnd
)

// BatchHeaderBytes is the size in bytes of a batch's header.
const BatchHeaderBytes = 61

// Bits of a batch's attributes.
const (
	attrCompression   = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batchHeader holds the header fields of a batch that reading needs.
type batchHeader struct {
	baseOffset, lastOffset int64 // offsets
	epoch                  int32 // of the leader that wrote it
	attributes             int16
	firstTime, maxTime     int64
	producerID             int64
	recordCount            int
}

// splitBatch splits the first batch off b and checks it. Content and error are nil if
// b ends within the batch: brokers truncate the last batch of a response at the size
// limit. On an error next is the offset after the batch, or -1 if the header could not
// be read.
func splitBatch(b []byte) (h batchHeader, content, rest []byte, next int64, err error) {
	if len(b) < batchLengthEnd {
		return h, nil, nil, -1, nil
	}

	be := binary.BigEndian
	length := int64(int32(be.Uint32(b[8:])))
	if length < batchMinContent {
		return h, nil, nil, -1, corruptError("a batch of impossible length")
	}
	// No error, as the last batch of a response may be cut; the reader reports one that stays incomplete.
	if int64(len(b)) < batchLengthEnd+length {
		return h, nil, nil, -1, nil
	}

	content, rest = b[:batchLengthEnd+length], b[batchLengthEnd+length:]
	if content[16] != batchMagic {
		return h, nil, nil, -1, corruptError("a record format other than version 2")
	}

	h = batchHeader{
		baseOffset:  int64(be.Uint64(content)),
		epoch:       int32(be.Uint32(content[12:])),
		attributes:  int16(be.Uint16(content[21:])),
		firstTime:   int64(be.Uint64(content[27:])),
		maxTime:     int64(be.Uint64(content[35:])),
		producerID:  int64(be.Uint64(content[43:])),
		recordCount: int(int32(be.Uint32(content[57:]))),
	}
	delta := int64(int32(be.Uint32(content[23:])))
	h.lastOffset = h.baseOffset + delta
	if h.baseOffset < 0 || delta < 0 || h.lastOffset < h.baseOffset || h.recordCount < 0 ||
		int64(h.recordCount) > delta+1 {
		return h, nil, nil, -1, corruptError("a batch with impossible offsets")
	}

	// After the offsets, which the checksum does not fully cover: they tell where to go on behind the damage.
	if crc32.Checksum(content[batchCRCEnd:], castagnoli) != be.Uint32(content[17:]) {
		return h, nil, nil, h.lastOffset + 1, corruptError("a batch whose checksum does not match")
	}

	return h, content[BatchHeaderBytes:], rest, h.lastOffset + 1, nil
}

// corruptError is the error of a damaged batch; its text is the reason.
type corruptError string

func (c corruptError) Error() string { return string(c) }

// Readable reports whether b begins with a complete, undamaged batch that does not end
// before an offset.
func Readable(b []byte, offset int64) bool {
	h, content, _, _, err := splitBatch(b)
	return err == nil && content != nil && h.lastOffset >= offset
}

// NextAfter returns the offset after the last complete batch in b and that batch's
// leader epoch, according to the unchecked headers. It returns false if b has no
// complete batch.
func NextAfter(b []byte) (next int64, epoch int32, ok bool) {
	be := binary.BigEndian
	for len(b) >= BatchHeaderBytes {
		length := int64(int32(be.Uint32(b[8:])))
		if length < batchMinContent || int64(len(b)) < batchLengthEnd+length {
			break
		}

		next = int64(be.Uint64(b)) + int64(int32(be.Uint32(b[23:]))) + 1
		epoch, ok = int32(be.Uint32(b[12:])), true
		b = b[batchLengthEnd+length:]
	}

	return next, epoch, ok
}
