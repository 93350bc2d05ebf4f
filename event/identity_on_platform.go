package event

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Identity identifies an event on its platform: the run of the platform (such as
// Core-UUID of FreeSWITCH) and the event's number in that run. All feeds that read the
// event give it the same identity; the normalizer makes one message of all raw records
// of cc.raw with that identity. The zero Identity means none.
type Identity struct {
	Run    string // 1 to MaxRun bytes of printable ASCII without spaces
	Number uint64
}

// MaxRun is the maximum length of Identity.Run in bytes.
const MaxRun = 128

// ErrIdentity is the error of ParseIdentity.
var ErrIdentity = errors.New("not an identity: want run/number")

// ParseIdentity parses the value of HeaderIdentity, as written by Append:
// "run/number".
func ParseIdentity(s string) (Identity, error) {
	// The run may contain "/" too. A uint64 has at most 20 digits.
	at := strings.LastIndexByte(s, '/')
	if at < 0 || !validRun(s[:at]) || len(s)-at > 1+20 {
		return Identity{}, ErrIdentity
	}

	digits, n := s[at+1:], uint64(0)
	for i := range len(digits) {
		d := uint64(digits[i]) - '0'
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return Identity{}, ErrIdentity
		}
		n = n*10 + d
	}

	if digits == "" {
		return Identity{}, ErrIdentity
	}

	return Identity{Run: s[:at], Number: n}, nil
}

// Valid reports whether the identity has a run that ParseIdentity accepts.
func (i Identity) Valid() bool { return validRun(i.Run) }

func validRun(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= MaxRun
}

// Append appends the wire form to dst.
func (i Identity) Append(dst []byte) []byte {
	dst = append(append(dst, i.Run...), '/')
	return strconv.AppendUint(dst, i.Number, 10)
}

// String returns the wire form, "" for the zero Identity.
func (i Identity) String() string {
	if i == (Identity{}) {
		return ""
	}
	return string(i.Append(nil))
}
