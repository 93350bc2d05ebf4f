package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"math"
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
	batchOverhead   = 61
	batchLengthEnd  = 12
	batchCRCEnd     = 21
	batchMagic      = 2
	batchMinContent = batchOverhead - batchLengthEnd
)

// Bits of a batch's attributes.
const (
	attrCompression   = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordSize returns an upper bound of the size of r's encoding in a batch: it assumes
// the largest offset and time deltas.
func recordSize(r *Record) int {
	n := 1 + 2*binary.MaxVarintLen64 + sizeBytes(r.Key) + sizeBytes(r.Value) + sizeVarint(int64(len(r.Headers)))
	for i := range r.Headers {
		n += sizeVarint(int64(len(r.Headers[i].Key))) + len(r.Headers[i].Key) + sizeBytes(r.Headers[i].Value)
	}
	return binary.MaxVarintLen32 + n
}

func sizeBytes(b []byte) int {
	if b == nil {
		return 1
	}
	return sizeVarint(int64(len(b))) + len(b)
}

// appendRecord appends r's encoding with its offset and time relative to the first
// record of the batch.
func appendRecord(dst []byte, r *Record, offsetDelta, timeDelta int64) []byte {
	n := 1 + sizeVarint(timeDelta) + sizeVarint(offsetDelta) + sizeBytes(r.Key) + sizeBytes(r.Value) +
		sizeVarint(int64(len(r.Headers)))
	for i := range r.Headers {
		n += sizeVarint(int64(len(r.Headers[i].Key))) + len(r.Headers[i].Key) + sizeBytes(r.Headers[i].Value)
	}
	dst = binary.AppendVarint(dst, int64(n))
	dst = append(dst, 0) // attributes: none are defined
	dst = binary.AppendVarint(dst, timeDelta)
	dst = binary.AppendVarint(dst, offsetDelta)
	dst = appendVarbytes(dst, r.Key)
	dst = appendVarbytes(dst, r.Value)
	dst = binary.AppendVarint(dst, int64(len(r.Headers)))
	for i := range r.Headers {
		dst = binary.AppendVarint(dst, int64(len(r.Headers[i].Key)))
		dst = append(dst, r.Headers[i].Key...)
		dst = appendVarbytes(dst, r.Headers[i].Value)
	}
	return dst
}

func appendVarbytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// sequence makes retries of a batch idempotent: the broker appends a producer's
// batches of one partition in sequence and each only once.
type sequence struct {
	id    int64 // producer id
	epoch int16
	next  int32 // sequence of the next record
}

func (s *sequence) advance(records int) {
	s.next = int32((int64(s.next) + int64(records)) & math.MaxInt32)
}

// sealBatch writes the header of batch b, which already contains the records.
func sealBatch(b []byte, records int, firstTime, maxTime int64, seq sequence, codec int8) {
	be := binary.BigEndian
	be.PutUint64(b, 0) // base offset: assigned by the broker
	be.PutUint32(b[8:], uint32(len(b)-batchLengthEnd))
	be.PutUint32(b[12:], math.MaxUint32) // leader epoch: unknown
	b[16] = batchMagic
	be.PutUint16(b[21:], uint16(codec)) // attributes: compression; timestamps of the producer
	be.PutUint32(b[23:], uint32(records-1))
	be.PutUint64(b[27:], uint64(firstTime))
	be.PutUint64(b[35:], uint64(maxTime))
	be.PutUint64(b[43:], uint64(seq.id))
	be.PutUint16(b[51:], uint16(seq.epoch))
	be.PutUint32(b[53:], uint32(seq.next))
	be.PutUint32(b[57:], uint32(records))
	be.PutUint32(b[17:], crc32.Checksum(b[batchCRCEnd:], castagnoli))
}

// batchHeader holds the header fields of a batch that reading needs.
type batchHeader struct {
	base, last         int64 // offsets
	epoch              int32 // of the leader that wrote it
	attributes         int16
	firstTime, maxTime int64
	producer           int64
	records            int
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
		return h, nil, nil, -1, corrupt("a batch of impossible length")
	}
	if int64(len(b)) < batchLengthEnd+length {
		return h, nil, nil, -1, nil
	}
	content, rest = b[:batchLengthEnd+length], b[batchLengthEnd+length:]
	if content[16] != batchMagic {
		return h, nil, nil, -1, corrupt("a record format other than version 2")
	}
	h = batchHeader{
		base:       int64(be.Uint64(content)),
		epoch:      int32(be.Uint32(content[12:])),
		attributes: int16(be.Uint16(content[21:])),
		firstTime:  int64(be.Uint64(content[27:])),
		maxTime:    int64(be.Uint64(content[35:])),
		producer:   int64(be.Uint64(content[43:])),
		records:    int(int32(be.Uint32(content[57:]))),
	}
	delta := int64(int32(be.Uint32(content[23:])))
	h.last = h.base + delta
	if h.base < 0 || delta < 0 || h.last < h.base || h.records < 0 || int64(h.records) > delta+1 {
		return h, nil, nil, -1, corrupt("a batch with impossible offsets")
	}
	if crc32.Checksum(content[batchCRCEnd:], castagnoli) != be.Uint32(content[17:]) {
		return h, nil, nil, h.last + 1, corrupt("a batch whose checksum does not match")
	}
	return h, content[batchOverhead:], rest, h.last + 1, nil
}

// corrupt returns the error of a damaged batch.
type corrupt string

func (c corrupt) Error() string { return string(c) }

// nextAfter returns the offset after the last complete batch in b and that batch's
// leader epoch, according to the unchecked headers. It returns false if b has no
// complete batch.
func nextAfter(b []byte) (next int64, epoch int32, ok bool) {
	be := binary.BigEndian
	for len(b) >= batchOverhead {
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
