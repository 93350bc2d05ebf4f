package format

import (
	"errors"

	"trunkline/event"
	"trunkline/format/split"
	"trunkline/internal/jsonscan"
)

// maxFields bounds how many fields a format asks for.
const maxFields = 80

// Fields are the values of a format's keys, by slot; nil where absent.
type Fields [maxFields]jsonscan.Value

// Event is what a contact-center record tells. Everything else in the record
// passes unread.
type Event struct {
	Type      event.Type
	Account   string // "": names none
	Timestamp int64  // Unix seconds, 0: has no clock of its own
	// Facts are what the record alone tells; the state before it may know more.
	Facts event.Facts
}

// Format is one kind of record of one source.
type Format struct {
	Name     string
	Topic    string // the raw topic of its records
	Internal bool   // Trunkline's own: not accepted over HTTP

	// Encodings are the media types of HTTP bodies accepted beside JSON and
	// NDJSON.
	Encodings map[string]Encoding

	// Keys are the members that the functions below read. A slot is below the
	// number of keys. Open, when set, looks into an envelope and overwrites fields
	// with those of what is inside.
	Keys jsonscan.Keys
	Open func(keys jsonscan.Keys, fields *Fields) error
	// Account returns the account that a record names, "" when it names none.
	Account func(fields *Fields) (string, error)
	// One of the two: Event reads a record of cc.raw, CDR one of cdr.raw. Both
	// leave the account to Account.
	Event func(fields *Fields) (Event, error)
	CDR   func(fields *Fields, c Calendar) (event.CDR, error)
}

// Encoding is a media type's division of an HTTP body into records.
type Encoding struct {
	Split split.Splitter
	// Copies is set if records are built anew rather than being parts of the
	// body, so that they need memory of their own.
	Copies bool
}

// Encoding returns how a body of the media type splits into records; ok is
// false when the format does not accept the media type.
func (f *Format) Encoding(mediaType string) (e Encoding, ok bool) {
	switch mediaType {
	case "application/json":
		return Encoding{Split: split.JSON}, true
	case "application/x-ndjson":
		return Encoding{Split: split.NDJSON}, true
	}
	e, ok = f.Encodings[mediaType]
	return e, ok
}

// Scan checks the record and reads the format's fields. The error is a
// *Rejection.
func (f *Format) Scan(record []byte, fields *Fields) error {
	clear(fields[:min(len(f.Keys), len(fields))])
	err := f.Keys.Scan(record, fields[:])
	if err == nil && f.Open != nil {
		err = f.Open(f.Keys, fields)
	}
	if err != nil {
		return RejectScan(err)
	}
	return nil
}

// ReadEvent reads a record of cc.raw. fields is its scratch space.
func (f *Format) ReadEvent(record []byte, fields *Fields) (Event, error) {
	if err := f.Scan(record, fields); err != nil {
		return Event{}, err
	}
	account, err := f.Account(fields)
	if err != nil {
		return Event{}, err
	}
	e, err := f.Event(fields)
	e.Account = account
	if e.Facts.Name == "" {
		e.Facts.Name = event.NameOther
	}
	if t, ok := e.Facts.Name.Type(); ok {
		e.Type = t
	}
	return e, err
}

// ReadCDR reads a record of cdr.raw. fields is its scratch space.
func (f *Format) ReadCDR(record []byte, fields *Fields, c Calendar) (event.CDR, error) {
	if err := f.Scan(record, fields); err != nil {
		return event.CDR{}, err
	}
	account, err := f.Account(fields)
	if err != nil {
		return event.CDR{}, err
	}
	row, err := f.CDR(fields, c)
	row.AccountID = account
	return row, err
}

// NamedAccount returns the account that the record names, "" when it names
// none. The error is a *Rejection: the record would become a dead letter.
func (f *Format) NamedAccount(record []byte) (string, error) {
	var fields Fields
	if err := f.Scan(record, &fields); err != nil {
		return "", err
	}
	return f.Account(&fields)
}

// Source is a system that sends records in one or more formats.
type Source struct {
	Formats []*Format
	// RecogniseKeys are the top-level members that Recognise wants to see.
	RecogniseKeys []string
	// Recognise returns the format of a record without a format header, nil when
	// it is none of the source's. It is nil where only the header tells.
	Recognise func(r *Unrecognised) (*Format, Confidence, error)
}

// Unrecognised is a record without a format header.
type Unrecognised struct {
	Topic  string
	Record []byte
	// Seen has the values of the source's RecogniseKeys, in their order; nil
	// where absent.
	Seen []jsonscan.Value
	// Fields is scratch space.
	Fields *Fields
}

// Confidence is the certainty of a source that a record is its own.
type Confidence int

// The confidences. A sure source wins over a likely one; of equals the one
// listed first.
const (
	Unlikely Confidence = iota
	Likely
	Sure
)

// RejectScan returns the rejection for an error of jsonscan.Scan.
func RejectScan(err error) *Rejection {
	kind := InvalidJSON
	switch {
	case errors.Is(err, jsonscan.ErrUTF8):
		kind = InvalidUTF8
	case errors.Is(err, jsonscan.ErrDepth):
		kind = TooDeep
	case errors.Is(err, jsonscan.ErrNotObject):
		kind = WrongType
	}
	return Rejectf(kind, "%v", err)
}
