package load

import (
	"bytes"
	"fmt"
)

// RunLength is the length of the name of a run.
const RunLength = 8

// Stamp is the part of an event's data that the receiver checks. In JSON it is one field of fixed
// length with a unique name, so that it can be found and read without parsing.
type Stamp struct {
	Stream int    // number of the account in the run, from 0
	Seq    uint64 // in the stream, from 1; 0: an unchecked probe
	At     int64  // due time, Unix nanoseconds
}

const (
	stampName    = `"trunkline_bench":"`
	streamDigits = 6
	seqDigits    = 12
	atDigits     = 19
	stampLength  = len(stampName) + RunLength + 1 + streamDigits + 1 + seqDigits + 1 + atDigits + 1
)

// MaxStreams is the highest number of accounts of a run.
const MaxStreams = 1_000_000

// Append appends the stamp's field, name and value, to an unfinished JSON object.
func (s Stamp) Append(dst []byte, run string) []byte {
	return fmt.Appendf(dst, stampName+"%s.%06d.%012d.%019d\"", run, s.Stream, s.Seq, s.At)
}

// stampReader reads the stamps of one run. It first tries the offset of the previous one, because
// most messages of a run have the same layout.
type stampReader struct {
	marker []byte // name and run
	offset int
}

func newStampReader(run string) stampReader {
	return stampReader{marker: []byte(stampName + run + ".")}
}

// ReadStamp returns the stamp of a run's event; ok is false if there is none.
func ReadStamp(run string, message []byte) (s Stamp, ok bool) {
	r := newStampReader(run)
	return r.read(message)
}

// read returns the stamp of a message; ok is false if it has none of this run.
func (r *stampReader) read(message []byte) (s Stamp, ok bool) {
	if !r.atLastOffset(message) {
		offset := bytes.Index(message, r.marker)
		if offset < 0 || len(message) < offset+stampLength {
			return Stamp{}, false
		}
		r.offset = offset
	}

	b := message[r.offset+len(r.marker) : r.offset+stampLength]
	stream, ok1 := parseDigits(b[:streamDigits])
	seq, ok2 := parseDigits(b[streamDigits+1 : streamDigits+1+seqDigits])
	at, ok3 := parseDigits(b[streamDigits+seqDigits+2 : len(b)-1])
	if !ok1 || !ok2 || !ok3 || b[streamDigits] != '.' || b[streamDigits+1+seqDigits] != '.' || b[len(b)-1] != '"' {
		return Stamp{}, false
	}

	return Stamp{int(stream), seq, int64(at)}, true
}

func (r *stampReader) atLastOffset(message []byte) bool {
	return len(message) >= r.offset+stampLength && bytes.Equal(message[r.offset:r.offset+len(r.marker)], r.marker)
}

// parseDigits parses a number of at most 19 digits.
func parseDigits(b []byte) (n uint64, ok bool) {
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}
