package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// ErrMalformed is the error of a response that ends too early or contradicts itself.
var ErrMalformed = errors.New("malformed response")

// Requests are built by appending to a byte slice. Kafka has two encodings, both big
// endian. The older one has strings with a two-byte length and arrays with a four-byte
// length. The flexible one (KIP-482) encodes both lengths as an unsigned varint of the
// length plus one, with zero for null, and ends each structure with tagged fields.

// AppendInt16 appends an int16.
func AppendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }

// AppendInt32 appends an int32.
func AppendInt32(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendInt64 appends an int64.
func AppendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendString appends a string in the older encoding.
func AppendString(b []byte, s string) []byte {
	return append(AppendInt16(b, int16(len(s))), s...)
}

// AppendCompactString appends a string in the flexible encoding.
func AppendCompactString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))+1), s...)
}

// AppendCompactArrayLen appends the length of an array in the flexible encoding.
func AppendCompactArrayLen(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)+1) }

// AppendNoTags ends a structure that has no tagged fields.
func AppendNoTags(b []byte) []byte { return append(b, 0) }

// FieldReader decodes a response. A read past the end returns zero values and sets Bad,
// which the caller checks once at the end: until then no returned value may be
// trusted.
type FieldReader struct {
	B   []byte // not read yet
	Bad bool
}

// Take reads n bytes without copying them.
func (r *FieldReader) Take(n int) []byte {
	if n < 0 || n > len(r.B) {
		r.B, r.Bad = nil, true
		return nil
	}
	v := r.B[:n:n]
	r.B = r.B[n:]
	return v
}

// Int8 reads an int8.
func (r *FieldReader) Int8() int8 {
	v := r.Take(1)
	if v != nil {
		return int8(v[0])
	}
	return 0
}

// Int16 reads an int16.
func (r *FieldReader) Int16() int16 {
	v := r.Take(2)
	if v != nil {
		return int16(binary.BigEndian.Uint16(v))
	}
	return 0
}

// Int32 reads an int32.
func (r *FieldReader) Int32() int32 {
	v := r.Take(4)
	if v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

// Int64 reads an int64.
func (r *FieldReader) Int64() int64 {
	v := r.Take(8)
	if v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

// Text decodes a string; null becomes "".
func (r *FieldReader) Text() string {
	n := r.Int16()
	if n < 0 {
		return ""
	}
	return string(r.Take(int(n)))
}

// ArrayLen decodes an array's length; null becomes 0. size is the minimum size of an
// element: a length beyond the remaining bytes is rejected before any allocation.
func (r *FieldReader) ArrayLen(size int) int {
	n := int(r.Int32())
	if n < 0 {
		return 0
	}
	if n > len(r.B)/size {
		r.B, r.Bad = nil, true
		return 0
	}
	return n
}

// Uvarint reads an unsigned varint of the flexible encoding.
func (r *FieldReader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.B)
	if n <= 0 {
		r.B, r.Bad = nil, true
		return 0
	}
	r.B = r.B[n:]
	return v
}

// CompactBytes decodes bytes in the flexible encoding without copying them; null
// becomes nil.
func (r *FieldReader) CompactBytes() []byte {
	n := r.Uvarint()
	if n == 0 {
		return nil
	}
	return r.Take(int(min(n-1, math.MaxInt32)))
}

// CompactArrayLen decodes an array's length in the flexible encoding; see ArrayLen.
func (r *FieldReader) CompactArrayLen(size int) int {
	n := r.Uvarint()
	if n == 0 {
		return 0
	}
	if n-1 > uint64(len(r.B)/size) {
		r.B, r.Bad = nil, true
		return 0
	}
	return int(n - 1)
}

// Tags calls field for each tagged field of a structure; nil skips them.
func (r *FieldReader) Tags(field func(tag uint64, value *FieldReader)) {
	for range r.Uvarint() {
		tag := r.Uvarint()
		value := FieldReader{B: r.Take(int(min(r.Uvarint(), math.MaxInt32)))}
		if r.Bad {
			return
		}
		if field != nil {
			field(tag, &value)
			r.Bad = r.Bad || value.Bad
		}
	}
}

// Err returns ErrMalformed if a read went past the end.
func (r *FieldReader) Err() error {
	if r.Bad {
		return ErrMalformed
	}
	return nil
}

// varint decodes a zigzag varint of a record.
func (r *FieldReader) varint() int64 {
	if len(r.B) > 0 && r.B[0] < 0x80 { // most are one byte long
		u := r.B[0]
		r.B = r.B[1:]
		return int64(u>>1) ^ -int64(u&1)
	}

	v, n := binary.Varint(r.B)
	if n <= 0 {
		r.B, r.Bad = nil, true
		return 0
	}

	r.B = r.B[n:]
	return v
}

// varlen decodes the length of a nullable byte string: -1 is null.
func (r *FieldReader) varlen() int {
	n := r.varint()
	if n < -1 || n > math.MaxInt32 {
		r.B, r.Bad = nil, true
		return -1
	}
	return int(n)
}

// varbytes decodes a nullable byte string without copying it.
func (r *FieldReader) varbytes() []byte {
	n := r.varlen()
	if n < 0 {
		return nil
	}
	return r.Take(n)
}

func sizeVarint(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	n := 1
	for ; u >= 0x80; u >>= 7 {
		n++
	}
	return n
}
