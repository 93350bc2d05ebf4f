package event

import (
	"errors"
	"math"
	"time"
)

// MaxPartitions is the maximum number of partitions of a topic of events: an id modulo
// MaxPartitions is the number of its partition.
const MaxPartitions = 1024

// ID is an event's id: the timestamp of the event's raw record in nanoseconds since
// the Unix epoch, moved up to the next value whose remainder modulo MaxPartitions is
// the record's partition. Ids are unique, and strictly increasing within a partition.
// On the wire an id is "cc_evt_" and 19 digits. The zero ID means no id.
type ID int64

const idPrefix = "cc_evt_"

const idDigits = 19

// ErrID is the error of ParseID and MessageID.
var ErrID = errors.New("not an event id: want cc_evt_ and 19 digits")

// NextID returns the id of a record with the Kafka timestamp unixMilli in partition;
// prev is the preceding id of that partition (0: none). It depends on nothing else, so
// normalizing the same records again yields the same ids. The timestamp is clamped to
// the range of 19 digits.
func NextID(prev ID, unixMilli int64, partition int) ID {
	id := alignUp(clampMilli(unixMilli)*int64(time.Millisecond), partition)
	// The remainder stays that of the partition.
	next := prev + MaxPartitions
	if prev != 0 && next > id {
		return next
	}
	return id
}

// FirstID returns the smallest possible id of partition at or after t. A time outside
// the range of 19 digits (2001 to 2262) is clamped.
func FirstID(t time.Time, partition int) ID {
	return alignUp(clampMilli(t.UnixMilli())*int64(time.Millisecond), partition)
}

// alignUp returns the first id of a partition at or after a time in nanoseconds.
func alignUp(ns int64, partition int) ID {
	base := ns - ns%MaxPartitions + int64(partition)
	if base < ns {
		base += MaxPartitions
	}
	return ID(base)
}

// 19 digits without a leading zero begin at 1e18 ns (2001-09-09); int64 ends in 2262.
// A margin at the upper end prevents overflow.
const (
	minMilli = 1_000_000_000_000
	maxMilli = 9_223_000_000_000
)

func clampMilli(ms int64) int64 { return min(max(ms, minMilli), maxMilli) }

// ParseID parses the wire form of an id.
func ParseID(s string) (ID, error) {
	if len(s) != len(idPrefix)+idDigits || s[:len(idPrefix)] != idPrefix {
		return 0, ErrID
	}

	var n uint64 // 19 digits are below 2^64
	for _, digit := range []byte(s[len(idPrefix):]) {
		if digit < '0' || digit > '9' {
			return 0, ErrID
		}
		n = n*10 + uint64(digit-'0')
	}

	if n < minMilli*uint64(time.Millisecond) || n > math.MaxInt64 {
		return 0, ErrID
	}

	return ID(n), nil
}

// messageIDField is the start of every message (see Message.Append).
const messageIDField = `{"id":"`

const messageIDEnd = len(messageIDField) + len(idPrefix) + idDigits

// MessageID returns the id of an encoded Message, which is at its beginning.
func MessageID(message []byte) (ID, error) {
	if len(message) <= messageIDEnd || string(message[:len(messageIDField)]) != messageIDField ||
		message[messageIDEnd] != '"' {
		return 0, ErrID
	}
	return ParseID(string(message[len(messageIDField):messageIDEnd]))
}

// Partition returns the partition of cc.raw and cc.evt that contains the event.
func (id ID) Partition() int { return int(id % MaxPartitions) }

// Time returns the time in the id. It is the Kafka timestamp of the raw record, unless
// several records of one partition arrived within a microsecond: then it is ahead by
// 1,024 ns per record.
func (id ID) Time() time.Time { return time.Unix(0, int64(id)) }

// Milli returns the Kafka timestamp, in Unix milliseconds, of the id's record on
// cc.evt, for look-ups by time.
func (id ID) Milli() int64 { return int64(id) / int64(time.Millisecond) }

// Append appends the wire form to dst.
func (id ID) Append(dst []byte) []byte {
	dst = append(dst, idPrefix...)
	var digits [idDigits]byte
	n := int64(id)
	for i := idDigits - 1; i >= 0; i-- {
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, digits[:]...)
}

// String returns the wire form, "" for the zero ID.
func (id ID) String() string {
	if id == 0 {
		return ""
	}
	return string(id.Append(make([]byte, 0, len(idPrefix)+idDigits)))
}

// MarshalText returns the wire form.
func (id ID) MarshalText() ([]byte, error) { return id.Append(nil), nil }

// UnmarshalText parses the wire form.
func (id *ID) UnmarshalText(b []byte) error {
	parsed, err := ParseID(string(b))
	*id = parsed
	return err
}
