package event

import (
	"cmp"
	"errors"
	"strconv"
)

// Position is the position of a raw record in its topic. Normalized records
// carry it in HeaderPosition: one whose position does not come after the last
// one of its partition is a repeat.
//
// A raw log can lose its end (an unclean leader election, a power failure) or
// be created again. Offsets are then given out a second time. The normalizer
// counts each such event as one more generation, so that positions keep rising.
type Position struct {
	Partition  int
	Offset     int64 // at most MaxOffset
	Generation int   // 0 to MaxGeneration
}

const (
	// MaxOffset is the highest offset that a position can hold: 2.8e14, a
	// million records a second for nine years.
	MaxOffset = 1<<offsetBits - 1
	// MaxGeneration is the highest generation. A log that was cut more often
	// stays in it, and repeats can then no longer be distinguished from new
	// records.
	MaxGeneration = 255

	offsetBits = 48
)

// ErrPosition is the error of ParsePosition.
var ErrPosition = errors.New("not a position: want partition:offset or partition:offset@generation")

// ParsePosition reads what String writes: "partition:offset", and
// "partition:offset@generation" from the first generation on.
func ParsePosition(s string) (Position, error) {
	partition, s, ok1 := cutNumber(s, 1<<31-1)
	if !ok1 || s == "" || s[0] != ':' {
		return Position{}, ErrPosition
	}
	offset, s, ok2 := cutNumber(s[1:], MaxOffset)
	generation, ok3 := int64(0), s == ""
	if !ok3 && s[0] == '@' {
		generation, s, ok3 = cutNumber(s[1:], MaxGeneration)
		ok3 = ok3 && s == ""
	}
	if !ok2 || !ok3 {
		return Position{}, ErrPosition
	}
	return Position{int(partition), offset, int(generation)}, nil
}

// cutNumber reads the decimal digits at the start of s, a number of at most
// limit, and returns what follows them.
func cutNumber(s string, limit int64) (n int64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		if n = n*10 + int64(s[i]-'0'); n > limit {
			return 0, "", false
		}
	}
	return n, s[i:], i > 0
}

// Append appends the wire form to dst.
func (p Position) Append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, int64(p.Partition), 10)
	dst = append(dst, ':')
	dst = strconv.AppendInt(dst, p.Offset, 10)
	if p.Generation > 0 {
		dst = append(dst, '@')
		dst = strconv.AppendInt(dst, int64(p.Generation), 10)
	}
	return dst
}

// String returns the wire form.
func (p Position) String() string { return string(p.Append(nil)) }

// Packed returns generation and offset as one number. Packed positions of a
// partition compare as the positions do.
func (p Position) Packed() int64 { return int64(p.Generation)<<offsetBits | p.Offset }

// Compare orders positions of one partition: by generation, then by offset.
func (p Position) Compare(o Position) int { return cmp.Compare(p.Packed(), o.Packed()) }
