package normalizer

import (
	"sort"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// maxFields is at least how many fields the widest format asks for.
const maxFields = 32

// fields are the values of a format's keys, by slot; nil where absent.
type fields [maxFields]jsonscan.Value

// facts are what a contact-center record says about itself. Everything else in
// it passes unseen.
type facts struct {
	kind      event.Type
	account   string // "": names none
	timestamp int64  // Unix seconds, 0: has no clock of its own
	queue     string // "": names none
}

// format is how one source spells its records.
type format struct {
	name string
	keys jsonscan.Keys
	// open, when set, looks into an envelope and overwrites f with the fields
	// of what is inside.
	open    func(keys jsonscan.Keys, f *fields) error
	account func(f *fields) (string, error)
	// One of the two: facts of a cc.raw record, row of a cdr.raw record that
	// Kafka got at c. Both leave the account to account.
	facts func(f *fields) (facts, error)
	row   func(f *fields, c calendar) (event.CDR, error)
}

// formats are all there are, in the order the contract lists them.
var formats = []*format{
	&svcCC, &generic, &freeswitchCallcenter, &freeswitchEvent,
	&kazooQubicle, &kazooACDc, &kazooCallEvent, &kazooConference, &kazooWebhook, &own,
	&freeswitchCDR, &kazooCDR, &svcCDR,
}

var formatsByName = func() map[string]*format {
	m := make(map[string]*format, len(formats))
	for _, f := range formats {
		m[f.name] = f
	}
	return m
}()

func (f *format) topic() string {
	if f.row != nil {
		return event.TopicCDRRaw
	}
	return event.TopicRaw
}

// scan checks the record and reads the format's fields into got.
func (f *format) scan(record []byte, got *fields) error {
	*got = fields{}
	err := f.keys.Scan(record, got[:])
	if err == nil && f.open != nil {
		err = f.open(f.keys, got)
	}
	if err != nil {
		return scanRejection(err)
	}
	return nil
}

// read is the facts of a cc.raw record. got is its scratch space.
func (f *format) read(record []byte, got *fields) (facts, error) {
	if err := f.scan(record, got); err != nil {
		return facts{}, err
	}
	account, err := f.account(got)
	if err != nil {
		return facts{}, err
	}
	what, err := f.facts(got)
	what.account = account
	return what, err
}

// Topic is the raw topic a format's records go to: event.TopicRaw or
// event.TopicCDRRaw. ok is false for an unknown format and for our own
// (event.FormatOwn), which is not taken over HTTP.
func Topic(name string) (topic string, ok bool) {
	f, ok := formatsByName[name]
	if !ok || f == &own {
		return "", false
	}
	return f.topic(), true
}

// Account is the account that a record of the format names, "" when it names
// none. The error is a *Rejection: the normalizer would dead-letter the record.
func Account(name string, record []byte) (string, error) {
	f, ok := formatsByName[name]
	if !ok {
		return "", reject(UnknownFormat, "unknown format")
	}
	var got fields
	if err := f.scan(record, &got); err != nil {
		return "", err
	}
	return f.account(&got)
}

// Formats lists the names of all formats, sorted.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	sort.Strings(names)
	return names
}
