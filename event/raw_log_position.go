package event

import (
	"cmp"
	"errors"
	"strconv"
)

// Position is the position of a raw record in its topic. Normalized records carry it
// in HeaderPosition: a record whose position is not above the last one of its
// partition is a repeat.
//
// A raw log can be truncated (by an unclean leader election or a power failure) or
// recreated. Its offsets are then used again. The normalizer starts a new generation
// each time, so that positions keep increasing.
type Position struct {
	Partition  int
	Offset     int64 // at most MaxOffset
	Generation int   // 0 to MaxGeneration
}

const (
	// MaxOffset is the highest offset in a position: 2.8e14, a million records per
	// second for nine years.
	MaxOffset = 1<<offsetBits - 1
	// MaxGeneration is the highest generation. A log truncated more often remains in
	// it; then repeats can no longer be distinguished from new records.
	MaxGeneration = 255

	offsetBits = 48
)

// ErrPosition is the error of ParsePosition.
var ErrPosition = errors.New("not a position: want partition:offset or partition:offset@generation")

// ParsePosition parses the format of String: "partition:offset", or
// "partition:offset@generation" for generations above 0.
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

// cutNumber parses the decimal digits at the start of s, a number of at most limit,
// and returns the remaining text.
func cutNumber(s string, limit int64) (n int64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		n = n*10 + int64(s[i]-'0')
		if n > limit {
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

// Packed returns generation and offset as one number. Packed positions of a partition
// are ordered as the positions are.
func (p Position) Packed() int64 { return int64(p.Generation)<<offsetBits | p.Offset }

// Compare orders positions of one partition: by generation, then by offset.
func (p Position) Compare(o Position) int { return cmp.Compare(p.Packed(), o.Packed()) }
