package wire

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// BatchBuilder encodes records as a batch. The batch follows a prefix, the beginning of a
// produce request.
type BatchBuilder struct {
	Encoded []byte // prefix, batch header, records
	Records int    // their number

	prefix             int   // length
	firstTime, maxTime int64 // Unix milliseconds
	codec              int8  // of the records; 0: not compressed
}

// NewBatchBuilder returns a builder of an empty batch. It uses memory up to its capacity.
func NewBatchBuilder(memory, prefix []byte) BatchBuilder {
	frame := append(append(memory[:0], prefix...), make([]byte, BatchHeaderBytes)...)
	return BatchBuilder{Encoded: frame, prefix: len(prefix)}
}

// Size returns the size of the batch in bytes.
func (b *BatchBuilder) Size() int { return len(b.Encoded) - b.prefix }

// Append appends a record with a timestamp in Unix milliseconds.
func (b *BatchBuilder) Append(r *Record, ms int64) {
	offset, time := b.addTimestamp(ms)
	b.Encoded = appendRecord(b.Encoded, r, offset, time)
}

// addTimestamp counts a record and returns its offset and timestamp relative to the first record.
func (b *BatchBuilder) addTimestamp(ms int64) (offsetDelta, timeDelta int64) {
	if b.Records == 0 {
		b.firstTime, b.maxTime = ms, ms
	}
	b.maxTime = max(b.maxTime, ms)
	b.Records++
	return int64(b.Records - 1), ms - b.firstTime
}

// ProducerState makes retries of a batch idempotent: the broker appends a producer's
// batches of one partition in sequence and each only once.
type ProducerState struct {
	ProducerID   int64 // -1: none
	Epoch        int16
	NextSequence int32 // sequence of the next record
}

// Advance counts written records.
func (s *ProducerState) Advance(records int) {
	s.NextSequence = int32((int64(s.NextSequence) + int64(records)) & math.MaxInt32)
}

// Seal completes the batch by writing its header.
func (b *BatchBuilder) Seal(seq ProducerState) {
	batch, be := b.Encoded[b.prefix:], binary.BigEndian
	be.PutUint64(batch, 0) // base offset: assigned by the broker
	be.PutUint32(batch[8:], uint32(len(batch)-batchLengthEnd))
	be.PutUint32(batch[12:], math.MaxUint32) // leader epoch: unknown
	batch[16] = batchMagic
	be.PutUint16(batch[21:], uint16(b.codec)) // attributes: compression; timestamps of the producer
	be.PutUint32(batch[23:], uint32(b.Records-1))
	be.PutUint64(batch[27:], uint64(b.firstTime))
	be.PutUint64(batch[35:], uint64(b.maxTime))
	be.PutUint64(batch[43:], uint64(seq.ProducerID))
	be.PutUint16(batch[51:], uint16(seq.Epoch))
	be.PutUint32(batch[53:], uint32(seq.NextSequence))
	be.PutUint32(batch[57:], uint32(b.Records))
	// Last, since it is of all that follows it.
	be.PutUint32(batch[17:], crc32.Checksum(batch[batchCRCEnd:], castagnoli))
}

// Halves returns two batches, not compressed, with the records of b.
func (b *BatchBuilder) Halves() (halves [2]BatchBuilder, err error) {
	records, err := b.uncompressedRecords()
	if err != nil {
		return halves, err
	}

	for i, size := range [2]int{b.Records / 2, b.Records - b.Records/2} {
		// In memory of their own, since they are copied from b.Encoded, which a connection may still read.
		halves[i] = NewBatchBuilder(nil, b.Encoded[:b.prefix])
		for range size {
			records = halves[i].appendEncoded(records, b.firstTime)
		}
	}

	return halves, nil
}

// appendEncoded moves the first of the encoded records to b and returns the remaining
// ones. firstTime is the base timestamp of their batch. See appendRecord for the
// encoding.
func (b *BatchBuilder) appendEncoded(records []byte, firstTime int64) (rest []byte) {
	length, n := binary.Varint(records)
	record, rest := records[n:n+int(length)], records[n+int(length):]
	attributes := record[0]
	timeDelta, n := binary.Varint(record[1:])
	record = record[1+n:]
	_, n = binary.Varint(record) // its offset delta in the other batch
	record = record[n:]

	offsetDelta, timeDelta := b.addTimestamp(firstTime + timeDelta)
	b.Encoded = binary.AppendVarint(b.Encoded, int64(1+sizeVarint(timeDelta)+sizeVarint(offsetDelta)+len(record)))
	b.Encoded = append(b.Encoded, attributes)
	b.Encoded = binary.AppendVarint(b.Encoded, timeDelta)
	b.Encoded = binary.AppendVarint(b.Encoded, offsetDelta)
	b.Encoded = append(b.Encoded, record...)

	return rest
}

// RecordSize returns an upper bound of the size of r's encoding in a batch: it assumes
// the largest offset and time deltas.
func RecordSize(r *Record) int {
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
