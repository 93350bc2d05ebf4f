package deadletter

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Topics are the topics that dead letters can be sent back to: those that the normalizer reads.
// Records of the other topics contain its ids and positions, which no other program may write.
func Topics() []string { return []string{event.TopicRaw, event.TopicCDRRaw} }

// Letter is one dead letter.
type Letter struct {
	Position event.Position // in cc.dead
	At       time.Time
	Topic    string // of the record that could not be normalized
	Kind     string // of the error, one of a fixed set
	Reason   string
	Size     int // of the value, in bytes

	record *kafka.Record // valid until the next read, unless it was cloned
}

// newLetter returns the letter in a record of cc.dead, which it refers to.
func newLetter(record *kafka.Record) Letter {
	return Letter{
		Position: event.Position{Partition: record.Partition, Offset: record.Offset}, At: record.Time,
		Topic: string(record.Header(event.HeaderOrigTopic)), Kind: string(record.Header(event.HeaderErrorKind)),
		Reason: string(record.Header(event.HeaderError)), Size: len(record.Value), record: record,
	}
}

// Row is a letter as JSON. Its value is JSON if it is valid JSON, text if it is valid UTF-8, or
// base64.
type Row struct {
	Position string            `json:"position"`
	Time     string            `json:"time"`
	Topic    string            `json:"topic"`
	Kind     string            `json:"kind"`
	Reason   string            `json:"reason"`
	Size     int               `json:"size"`
	Key      string            `json:"key,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Value    any               `json:"value,omitempty"`
	Base64   string            `json:"value_base64,omitempty"`

	At time.Time `json:"-"`
}

// toRow returns the letter as JSON, with key, headers and value if withPayload is set.
func (l *Letter) toRow(withPayload bool) Row {
	row := Row{
		Position: l.Position.String(), Time: l.At.UTC().Format(time.RFC3339Nano), At: l.At,
		Topic: l.Topic, Kind: l.Kind, Reason: l.Reason, Size: l.Size,
	}

	if !withPayload {
		return row
	}

	row.Key = string(l.record.Key)
	row.Headers = make(map[string]string, len(l.record.Headers))
	for _, header := range l.record.Headers {
		row.Headers[header.Key] = string(header.Value)
	}

	switch value := slices.Clone(l.record.Value); {
	case json.Valid(value) && utf8.Valid(value):
		row.Value = json.RawMessage(value)
	case utf8.Valid(value):
		row.Value = string(value)
	default:
		row.Base64 = base64.StdEncoding.EncodeToString(value)
	}

	return row
}

// errorHeaders are the headers that mark a record as a dead letter.
var errorHeaders = []string{
	event.HeaderErrorKind, event.HeaderError,
	event.HeaderOrigTopic, event.HeaderOrigPartition, event.HeaderOrigOffset,
}

// original returns the record without its dead letter headers. Kafka gives it a new time, so its
// event gets a new id; its key assigns it to its account's partition.
func (l *Letter) original() kafka.Record {
	headers := make([]kafka.Header, 0, len(l.record.Headers))
	for _, header := range l.record.Headers {
		if !slices.Contains(errorHeaders, header.Key) {
			headers = append(headers, header)
		}
	}

	return kafka.Record{
		Topic: l.Topic, Partition: kafka.AnyPartition,
		Key: l.record.Key, Value: l.record.Value, Headers: headers,
	}
}
