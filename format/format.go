package format

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"trunkline/event"
	"trunkline/format/split"
	"trunkline/internal/jsonscan"
)

// maxFields bounds the number of fields that a format reads.
const maxFields = 88

// Fields are the values of a format's keys, by slot; nil where absent. Behind them are those
// of the members of a call event, see CallEventKeys.
type Fields [maxFields + len(callEventMembers)]jsonscan.Value

// Event holds the parsed content of a contact-center record. Everything else in the
// record remains unread.
type Event struct {
	Type      event.Type
	Account   string // "": the record names none
	Timestamp int64  // Unix seconds, 0: the record has no timestamp
	// Facts are those of the record alone; the state before the event may add more.
	Facts event.Facts
	// Call has what the members of a call event need beside the facts.
	Call CallDetails
	// IsLegOf, of the event of a leg whose record names only its device, reports whether an agent
	// has that device. The state tells which agent's leg it is.
	IsLegOf func(agentID string) bool
}

// Format is a kind of records of a source.
type Format struct {
	Name     string
	Topic    string // the raw topic of its records
	Internal bool   // Trunkline's own: not accepted over HTTP
	// FromPlatform is set for the records of a telephone switch, in which callers and the switch's clock
	// write: what cannot be stored in them is replaced or left out, and never rejects the record.
	FromPlatform bool

	// Encodings are the media types of HTTP bodies accepted in addition to JSON and
	// NDJSON.
	Encodings map[string]Encoding

	// Keys are the members that the functions below read. A slot is below the number
	// of keys. OpenEnvelope, if set, reads an envelope and overwrites fields with those of
	// its content.
	Keys         jsonscan.Keys
	OpenEnvelope func(keys jsonscan.Keys, fields *Fields) error
	// ReadAccount returns the account that a record names, "" if none.
	ReadAccount func(fields *Fields) (string, error)
	// Exactly one is set: DecodeEvent reads a record of cc.raw, DecodeCDR one of cdr.raw. Both
	// leave the account to ReadAccount.
	DecodeEvent func(fields *Fields) (Event, error)
	DecodeCDR   func(fields *Fields, c CallTimes) (event.CDR, error)
	// ExtensionOf returns the extension of an agent with this id; nil: it is the id.
	ExtensionOf func(agentID string) string
	// HasSeveralRecords, if set, reports whether the source may send further records with the row's call id,
	// of which the one with the best outcome is the row (docs/topics.md). Otherwise the newest is.
	HasSeveralRecords func(fields *Fields) bool
}

// ValidUTF8 returns a record as it is parsed: with U+FFFD for bytes that are not UTF-8, if it is a platform's: callers
// and administrators write names in other character sets. f may be nil, an unknown format.
func (f *Format) ValidUTF8(record []byte) (valid []byte, replaced bool) {
	if f == nil || !f.FromPlatform || utf8.Valid(record) {
		return record, false
	}
	return bytes.ToValidUTF8(record, []byte("\uFFFD")), true
}

// Encoding describes how an HTTP body of a media type is split into records.
type Encoding struct {
	Split split.Splitter
	// Copies is set if records are newly built instead of parts of the body, and need
	// memory of their own.
	Copies bool
}

// EncodingOf returns how a body of the media type is split into records; ok is false if
// the format does not accept the media type.
func (f *Format) EncodingOf(mediaType string) (e Encoding, ok bool) {
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
	// Slots above hold values of other formats, which this one does not read.
	clear(fields[:min(len(f.Keys), maxFields)])
	clear(fields[maxFields:])
	err := f.Keys.Scan(record, fields[:])
	if err == nil {
		err = f.unwrap(fields)
	}
	if err != nil {
		return RejectScan(err)
	}

	return nil
}

// unwrap calls OpenEnvelope, if the format has one, for fields of a scan.
func (f *Format) unwrap(fields *Fields) error {
	if f.OpenEnvelope == nil {
		return nil
	}
	members := [len(callEventMembers)]jsonscan.Value(fields[maxFields:]) // the record's own, not the content's
	err := f.OpenEnvelope(f.Keys, fields)
	copy(fields[maxFields:], members[:])
	return err
}

// Split splits a body in one of the format's encodings. take gets each record with its offset and the account
// that NamedAccount would return, "" instead of an error. Errors are those of take and of split.Splitter.
func (f *Format) Split(e Encoding, body []byte, take func(record []byte, at int, account string) error) error {
	var fields Fields
	return e.Split(body, split.Sink{MemberKeys: f.Keys, MemberValues: fields[:],
		Take: func(record []byte, at int) error {
			var account string
			err := f.unwrap(&fields)
			if err == nil {
				account, err = f.ReadAccount(&fields)
			}
			if err != nil {
				account = ""
			}

			return take(record, at, account)
		}})
}

// ReadEvent reads a record of cc.raw. fields is its scratch space.
func (f *Format) ReadEvent(record []byte, fields *Fields) (Event, error) {
	if err := f.Scan(record, fields); err != nil {
		return Event{}, err
	}

	account, err := f.ReadAccount(fields)
	if err != nil {
		return Event{}, err
	}

	e, err := f.DecodeEvent(fields)
	if err != nil {
		return e, err
	}

	if err := e.Facts.Check(); err != nil {
		return e, Rejectf(OutOfRange, "%v", err)
	}

	e.Account = account
	e.Call.Has = callEventMembersOf(fields)
	if e.Facts.Name == "" {
		e.Facts.Name = event.NameOther
	}
	if t, ok := e.Facts.Name.Type(); ok {
		e.Type = t
	}

	return e, nil
}

// ReadCDR reads a record of cdr.raw. fields is its scratch space. A row of a platform has been repaired,
// and c.Repairs counts how.
func (f *Format) ReadCDR(record []byte, fields *Fields, c CallTimes) (event.CDR, error) {
	if err := f.Scan(record, fields); err != nil {
		return event.CDR{}, err
	}

	account, err := f.ReadAccount(fields)
	if err != nil {
		return event.CDR{}, err
	}

	row, err := f.DecodeCDR(fields, c)
	row.AccountID = account
	if err == nil && f.FromPlatform {
		repairRow(&row, c)
	}

	return row, err
}

// repairRow completes a platform's row and gives it its id.
func repairRow(row *event.CDR, c CallTimes) {
	c.FillTimes(row)
	n := row.Repair()
	// Of the repaired start and call id.
	row.ID = RowID(row.Timestamp, row.CallID)

	if c.Repairs != nil {
		c.Repairs.Text += n.Text
		c.Repairs.Cut += n.Cut
		c.Repairs.Clock += n.Clock
	}
}

// NamedAccount returns the account that the record names, "" if none. The error is a
// *Rejection: the record would become a dead letter.
func (f *Format) NamedAccount(record []byte) (string, error) {
	var fields Fields
	if err := f.Scan(record, &fields); err != nil {
		return "", err
	}
	return f.ReadAccount(&fields)
}

// Source is a system that sends records in one or more formats.
type Source struct {
	Formats []*Format
	// RecogniseKeys are the top-level members that Recognise needs.
	RecogniseKeys []string
	// Recognise returns the format of a record without a format header, nil if it is
	// not of this source. It is nil if only the header identifies the source.
	Recognise func(r *Unrecognised) (*Format, Confidence, error)
}

// Unrecognised is a record without a format header.
type Unrecognised struct {
	Topic  string
	Record []byte
	// Values has the values of the source's RecogniseKeys, in order; nil if absent.
	Values []jsonscan.Value
	// Fields is scratch space.
	Fields *Fields
}

// Confidence is the certainty of a source that a record is its own.
type Confidence int

// The confidences. A sure source precedes a likely one; among equals the one listed
// first wins.
const (
	Unlikely Confidence = iota
	Likely
	Sure
)

// RejectScan returns the rejection for an error of a scan by jsonscan.
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
