package ingest

import (
	"bytes"
	"errors"

	"trunkline/internal/fault"
)

// sink takes a body's records one by one, in order; at is where in the body the
// record begins, for messages.
type sink func(record []byte, at int) error

// splitter cuts a body into records. Its own faults are *splitError; what the
// sink answers ends the work and is passed on.
type splitter func(body []byte, emit sink) error

// splitError is where and why a body cannot be taken.
type splitError struct {
	at     int // offset in the body
	kind   fault.Kind
	reason string
}

func (e *splitError) Error() string { return e.reason }

func malformed(at int, reason string) error {
	return &splitError{at, fault.KindInvalid, reason}
}

func recordTooLarge(at int) error {
	return &splitError{at, fault.KindTooLarge, "a record is over 1 MiB"}
}

// withLine turns a *splitError into a fault that names the line of the text it
// happened in; other errors stay what they are.
func withLine(err error, text []byte) error {
	var split *splitError
	if !errors.As(err, &split) {
		return err
	}
	line := 1 + bytes.Count(text[:split.at], []byte("\n"))
	return fault.New(split.kind, "Line %d: %s", line, split.reason)
}
