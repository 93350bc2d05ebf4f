package event

import (
	"encoding/json"
	"strconv"
)

// Topics, without the configured prefix. Partition n of a raw topic becomes
// partition n of its normalized topic.
const (
	TopicRaw    = "cc.raw"  // contact-center events as their source sent them
	TopicCDRRaw = "cdr.raw" // call records as their source sent them
	TopicEvents = "cc.evt"  // channel messages, byte for byte what a client gets
	TopicCDR    = "cdr"     // call record rows
	TopicDead   = "cc.dead" // what could not be normalized, with its reason
)

// Record headers.
const (
	HeaderFormat         = "format"          // raw: the source's format
	HeaderSource         = "source"          // raw: which feed or key sent it
	HeaderTrace          = "traceparent"     // all: W3C trace context
	HeaderTraceState     = "tracestate"      // all, with HeaderTrace
	HeaderType           = "type"            // cc.evt: the message's type
	HeaderAccount        = "account_id"      // cc.evt, cdr: the message's account
	HeaderOriginalFormat = "original_format" // cc.evt: format of the raw record
	HeaderPosition       = "source_position" // cc.evt, cdr: Position of the raw record
	HeaderSourceLog      = "source_log"      // cc.evt, cdr: the raw log that HeaderPosition is in: topic id/leader epoch
	HeaderOrigination    = "origination_call_id"
	HeaderErrorKind      = "error_kind" // cc.dead: bounded reason, see Dead*
	HeaderError          = "error"      // cc.dead: the reason in words
	HeaderOrigTopic      = "original_topic"
	HeaderOrigPartition  = "original_partition"
	HeaderOrigOffset     = "original_offset"
)

// FormatOwn is the format of Trunkline's own events (call progress, recording
// stored, AI session). It is not taken over HTTP.
const FormatOwn = "trunkline.event"

// Message is one event as a subscriber gets it (specification, "Events channel
// message").
type Message struct {
	ID        ID
	Type      Type
	AccountID string
	Timestamp int64           // Unix seconds, when it happened
	Data      json.RawMessage // the source's event, byte for byte; a JSON object
	Metadata  Metadata
}

// Metadata is the message's processing information.
type Metadata struct {
	Source         string
	OriginalFormat string
	ProcessedAt    int64  // Unix seconds
	QueueID        string // "" when the event names no queue: then absent
}

// Append appends the message's JSON to dst: the bytes of a cc.evt record and of
// every WebSocket frame. The id comes first (see MessageID). Data is copied as
// it is.
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
	return append(dst, "}}"...)
}

// AppendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always marshals
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
