package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Message is one event as sent to subscribers. docs/channel.md describes its fields.
type Message struct {
	ID        ID
	Type      Type
	AccountID string
	Timestamp int64 // Unix seconds of the event
	// the source's event, of a call event with the specified members behind its own; a JSON object
	Data     json.RawMessage
	Metadata Metadata
}

// Metadata is the message's processing information.
type Metadata struct {
	Source         string
	OriginalFormat string
	ProcessedAt    int64  // Unix seconds
	QueueID        string // "" if the event names no queue; then absent
	Facts          Facts
}

// Append appends the message's JSON to dst: the bytes of a cc.evt record and of every
// WebSocket frame. The id comes first (see MessageID). Data is copied unchanged.
func (m *Message) Append(dst []byte) []byte {
	dst = append(dst, messageIDField...)
	dst = m.ID.Append(dst)
	dst = append(dst, `","type":`...)
	dst = AppendString(dst, string(m.Type))
	dst = append(dst, `,"account_id":`...)
	dst = AppendString(dst, m.AccountID)
	dst = append(dst, `,"timestamp":`...)
	dst = strconv.AppendInt(dst, m.Timestamp, 10)
	dst = append(dst, `,"data":`...)
	dst = append(dst, m.Data...)
	dst = append(dst, `,"metadata":{"source":`...)
	dst = AppendString(dst, m.Metadata.Source)
	dst = append(dst, `,"original_format":`...)
	dst = AppendString(dst, m.Metadata.OriginalFormat)
	dst = append(dst, `,"processed_at":`...)
	dst = strconv.AppendInt(dst, m.Metadata.ProcessedAt, 10)

	if m.Metadata.QueueID != "" {
		dst = append(dst, `,"queue_id":`...)
		dst = AppendString(dst, m.Metadata.QueueID)
	}

	dst = append(dst, `,"facts":`...)
	dst = m.Metadata.Facts.Append(dst)
	return append(dst, "}}"...)
}

// MessageFacts returns the timestamp, the source and the facts of an encoded Message
// (see Append), without parsing its data; the other fields stay empty. ok is false for
// a message written before messages had facts.
func MessageFacts(message []byte) (m Message, ok bool, err error) {
	// Quotation marks within strings are escaped, so type and account cannot contain
	// this member, and the metadata has it only once.
	_, rest, found := bytes.Cut(message, []byte(`,"timestamp":`))
	digits, _, found2 := bytes.Cut(rest, []byte(`,"data":`))
	metadata := bytes.LastIndex(message, []byte(metadataMember))
	if !found || !found2 || metadata < 0 {
		return Message{}, false, errMessage
	}

	m.Timestamp, err = strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return Message{}, false, errMessage
	}

	read := struct {
		Source string `json:"source"`
		Facts  *Facts `json:"facts"`
	}{}
	object := message[metadata+len(metadataMember) : len(message)-1]
	if err := json.Unmarshal(object, &read); err != nil {
		return Message{}, false, fmt.Errorf("reading metadata: %w", err)
	}

	m.Metadata.Source = read.Source
	if read.Facts == nil {
		return m, false, nil
	}

	m.Metadata.Facts = *read.Facts
	return m, true, nil
}

const metadataMember = `,"metadata":`

var errMessage = errors.New("not a message")

// escapes holds the bytes for which AppendString leaves the string to json.Marshal: those that JSON
// escapes, and those of characters that are not ASCII.
var escapes = func() (set [256]bool) {
	for c := range set {
		set[c] = c < 0x20 || c >= 0x7f || c == '"' || c == '\\'
	}
	return set
}()

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if escapes[s[i]] {
			quoted, _ := json.Marshal(s) // marshalling a string cannot fail
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
