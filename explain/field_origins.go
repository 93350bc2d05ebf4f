package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// Raw is the raw record that the event was made from. Its value is the message's data, but for what the
// normalizer changes: see isDataOf.
type Raw struct {
	Position  string    // as event.Position writes it; "": not known
	Available bool      // false: deleted, or another record has its offset now
	Time      time.Time // zero: not available
	Key       string
	Headers   map[string]string
}

// Format is the format of the raw record.
type Format struct {
	Name string
	From FormatFrom
}

// FormatFrom names the origin of the format.
type FormatFrom string

// Origins of the format.
const (
	FormatFromHeader  FormatFrom = "header"  // the record's header names it
	FormatFromKeys    FormatFrom = "keys"    // the record's members are those of the format
	FormatFromNothing FormatFrom = "nothing" // not recognised; the record has an account
	FormatFromUnknown FormatFrom = "unknown" // the raw record is not available
)

// Account is the account of the event.
type Account struct {
	ID   string
	From AccountFrom
}

// AccountFrom names the origin of the account.
type AccountFrom string

// Origins of the account.
const (
	AccountFromRecord  AccountFrom = "record"  // a member of the raw record
	AccountFromKey     AccountFrom = "key"     // the raw record's Kafka key: of the API key or the feed that sent it
	AccountFromUnknown AccountFrom = "unknown" // the raw record is not available
)

// Fact is a member of metadata.facts.
type Fact struct {
	Name  string
	Value json.RawMessage
	From  FactFrom
}

// FactFrom names the origin of a fact.
type FactFrom string

// Origins of facts.
const (
	FactFromRecord  FactFrom = "record"  // the raw record has it
	FactFromState   FactFrom = "state"   // the state before the event
	FactFromUnknown FactFrom = "unknown" // the raw record is not available
)

// readOrigins adds the raw record, format, account and origins of facts.
func (s *Service) readOrigins(ctx context.Context, record *kafka.Record, m *identity.Message, e *Explanation) error {
	e.Format, e.Account = Format{m.Format, FormatFromUnknown}, Account{m.AccountID, AccountFromUnknown}
	data, facts := dataAndFacts(record.Value)
	raw, err := s.readRaw(ctx, record, m, data, &e.Raw)
	if err != nil {
		return err
	}

	var recordFacts map[string]json.RawMessage // the facts in the raw record
	if raw != nil {
		rawFacts, namedAccount, ok := parseRaw(raw, m.Format, e)
		if ok {
			recordFacts = members(rawFacts.Append(nil))
			e.Account.From = AccountFromKey
			// The account of a feed's record is its key, whatever the record names.
			if namedAccount == m.AccountID && !strings.HasPrefix(e.Raw.Headers[event.HeaderSource], "feed:") {
				e.Account.From = AccountFromRecord
			}
		}
	}

	e.Facts = []Fact{}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		f := Fact{name, facts[name], FactFromUnknown}
		switch {
		case recordFacts == nil:
		case bytes.Equal(recordFacts[name], f.Value):
			f.From = FactFromRecord
		default:
			f.From = FactFromState
		}

		e.Facts = append(e.Facts, f)
	}

	return nil
}

// readRaw reads the raw record, nil when it is not available. Its value is the one that the normalizer parsed.
func (s *Service) readRaw(ctx context.Context, record *kafka.Record, m *identity.Message, data []byte,
	into *Raw) (raw *kafka.Record, err error) {
	position, err := event.ParsePosition(string(record.Header(event.HeaderPosition)))
	if err != nil {
		return nil, nil // of another program
	}

	into.Position = position.String()
	first, next, err := s.LogReader.Offsets(ctx, event.TopicRaw, position.Partition)
	if err != nil || position.Offset < first || position.Offset >= next {
		return nil, err
	}

	f, _ := registry.Lookup(m.Format)
	err = s.LogReader.Scan(ctx, event.TopicRaw, position.Partition, position.Offset, position.Offset+1,
		func(r *kafka.Record) {
			value, _ := f.ValidUTF8(r.Value)
			if isDataOf(value, m.Type, data) { // else the log was truncated and has another record there
				raw = r.Clone()
				raw.Value = value
			}
		})
	if raw == nil || err != nil {
		return nil, err
	}

	into.Available, into.Time, into.Key = true, raw.Time, string(raw.Key)
	into.Headers = make(map[string]string, len(raw.Headers))
	for _, h := range raw.Headers {
		into.Headers[h.Key] = string(h.Value)
	}

	return raw, nil
}

// isDataOf reports whether the normalizer makes the data of a message of that type from the record. Behind the
// record's own members, the data of a call event have those of the specification that the record lacks.
func isDataOf(record []byte, typ event.Type, data []byte) bool {
	record = bytes.TrimSpace(record) // white space around an object is not part of the member data
	if bytes.Equal(record, data) {
		return true
	}

	end := bytes.LastIndexByte(record, '}')
	if typ != event.QueueCall || end < 0 {
		return false
	}

	added, ok := bytes.CutPrefix(data, record[:end])
	return ok && bytes.HasPrefix(added, []byte(","))
}

// parseRaw parses the raw record like the normalizer. It returns the facts and the
// account in the record; ok is false if this version parses it in another format, or not
// at all.
func parseRaw(raw *kafka.Record, name string, e *Explanation) (facts event.Facts, account string, ok bool) {
	f, known := registry.Lookup(name)
	switch {
	case raw.Header(event.HeaderFormat) != nil:
		e.Format.From = FormatFromHeader
	case !known:
		e.Format.From = FormatFromNothing
		_, account, err := registry.Recognise(event.TopicRaw, raw.Value, &registry.Scratch{})
		return event.Facts{Name: event.NameOther}, account, err == nil
	default:
		e.Format.From = FormatFromKeys
	}

	if !known || f.DecodeEvent == nil {
		return event.Facts{}, "", false
	}

	var fields format.Fields
	parsed, err := f.ReadEvent(raw.Value, &fields)
	return parsed.Facts, parsed.Account, err == nil
}

// dataAndFacts returns the data and the facts of a message.
func dataAndFacts(message []byte) (data []byte, facts map[string]json.RawMessage) {
	var m struct {
		Data     json.RawMessage `json:"data"`
		Metadata struct {
			Facts json.RawMessage `json:"facts"`
		} `json:"metadata"`
	}
	if json.Unmarshal(message, &m) != nil {
		return nil, nil
	}

	return m.Data, members(m.Metadata.Facts)
}

func members(object []byte) (values map[string]json.RawMessage) {
	if json.Unmarshal(object, &values) != nil {
		return nil
	}
	return values
}
