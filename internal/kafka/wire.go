package kafka

import (
	"encoding/binary"
	"math"
)

// Requests are built by appending to a byte slice. Kafka has two encodings, both big
// endian. The older one has strings with a two-byte length and arrays with a four-byte
// length. The flexible one (KIP-482) encodes both lengths as an unsigned varint of the
// length plus one, with zero for null, and ends each structure with tagged fields.

func appendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func appendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendString(b []byte, s string) []byte {
	return append(appendInt16(b, int16(len(s))), s...)
}

// appendCompactString appends a string in the flexible encoding.
func appendCompactString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))+1), s...)
}

// appendCompactArray appends the length of an array in the flexible encoding.
func appendCompactArray(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)+1) }

// appendNoTags ends a structure that has no tagged fields.
func appendNoTags(b []byte) []byte { return append(b, 0) }

// wireReader decodes a response. A read past the end returns zero values and sets bad,
// which the caller checks once at the end: until then no returned value may be
// trusted.
type wireReader struct {
	b   []byte
	bad bool
}

func (r *wireReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.bad = nil, true
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *wireReader) int8() int8 {
	if v := r.take(1); v != nil {
		return int8(v[0])
	}
	return 0
}

func (r *wireReader) int16() int16 {
	if v := r.take(2); v != nil {
		return int16(binary.BigEndian.Uint16(v))
	}
	return 0
}

func (r *wireReader) int32() int32 {
	if v := r.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (r *wireReader) int64() int64 {
	if v := r.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// string decodes a string; null becomes "".
func (r *wireReader) string() string {
	n := r.int16()
	if n < 0 {
		return ""
	}
	return string(r.take(int(n)))
}

// array decodes an array's length; null becomes 0. size is the minimum size of an
// element: a length beyond the remaining bytes is rejected before any allocation.
func (r *wireReader) array(size int) int {
	n := int(r.int32())
	if n < 0 {
		return 0
	}
	if n > len(r.b)/size {
		r.b, r.bad = nil, true
		return 0
	}
	return n
}

// uvarint reads an unsigned varint of the flexible encoding.
func (r *wireReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// compactBytes decodes bytes in the flexible encoding without copying them; null
// becomes nil.
func (r *wireReader) compactBytes() []byte {
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	return r.take(int(min(n-1, math.MaxInt32)))
}

// compactArray decodes an array's length in the flexible encoding; see array.
func (r *wireReader) compactArray(size int) int {
	n := r.uvarint()
	if n == 0 {
		return 0
	}
	if n-1 > uint64(len(r.b)/size) {
		r.b, r.bad = nil, true
		return 0
	}
	return int(n - 1)
}

// tags calls field for each tagged field of a structure; nil skips them.
func (r *wireReader) tags(field func(tag uint64, value *wireReader)) {
	for range r.uvarint() {
		tag := r.uvarint()
		value := wireReader{b: r.take(int(min(r.uvarint(), math.MaxInt32)))}
		if r.bad {
			return
		}
		if field != nil {
			field(tag, &value)
			r.bad = r.bad || value.bad
		}
	}
}

// malformed returns errMalformed if a read went past the end.
func (r *wireReader) malformed() error {
	if r.bad {
		return errMalformed
	}
	return nil
}

func (r *wireReader) topicID() TopicID {
	var id TopicID
	copy(id[:], r.take(len(id)))
	return id
}

// varint decodes a zigzag varint of a record.
func (r *wireReader) varint() int64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // most are one byte long
		u := r.b[0]
		r.b = r.b[1:]
		return int64(u>>1) ^ -int64(u&1)
	}
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// varlen decodes the length of a nullable byte string: -1 is null.
func (r *wireReader) varlen() int {
	n := r.varint()
	if n < -1 || n > math.MaxInt32 {
		r.b, r.bad = nil, true
		return -1
	}
	return int(n)
}

// varbytes decodes a nullable byte string without copying it.
func (r *wireReader) varbytes() []byte {
	n := r.varlen()
	if n < 0 {
		return nil
	}
	return r.take(n)
}

func sizeVarint(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
