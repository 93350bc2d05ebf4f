package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Topics, without the configured prefix. Records of partition n of a raw topic are
// normalized to partition n of its normalized topic.
const (
	TopicRaw    = "cc.raw"    // contact-center events, unchanged
	TopicCDRRaw = "cdr.raw"   // call records, unchanged
	TopicEvents = "cc.evt"    // channel messages, in the bytes that clients receive
	TopicState  = "cc.state"  // agents, calls and devices: the fold of the facts of cc.evt, compacted
	TopicStats  = "cc.stats"  // figures of queues and agents: a fold of the facts of cc.evt, compacted
	TopicQueues = "cc.queues" // configuration of queues, compacted, of one partition
	// partitions of cc.evt with events of each account (AccountPartition), compacted, one partition
	TopicAccounts = "cc.accounts"
	TopicCDR      = "cdr"     // call record rows
	TopicDead     = "cc.dead" // raw records that could not be normalized, with the reason
	TopicAudit    = "audit"   // entries of the audit log, with audit.topic
)

// Record headers.
const (
	HeaderFormat   = "format"   // raw: the source's format
	HeaderSource   = "source"   // raw: the feed or API key that sent it
	HeaderIdentity = "identity" // raw, cc.evt: Identity of an event that may be sent several times
	// raw: IANA name of the zone of a switch that writes local times; absent: UTC
	HeaderTimeZone = "time_zone"
	// raw: of a feed's event of an unknown account: the names that were looked up, a line each
	HeaderAccountNames = "account_names"
	// raw: <hash of source and Idempotency-Key>/<number of the record in its body, from 0>
	HeaderBody           = "body"
	HeaderTrace          = "traceparent"     // all: W3C trace context
	HeaderTraceState     = "tracestate"      // all, with HeaderTrace
	HeaderType           = "type"            // cc.evt: the message's type
	HeaderAccount        = "account_id"      // cc.evt, cdr: the message's account
	HeaderOriginalFormat = "original_format" // cc.evt: format of the raw record
	HeaderName           = "name"            // cc.evt: the facts' name
	HeaderAgent          = "agent_id"        // cc.evt: the facts' agent, if any
	HeaderQueue          = "queue_id"        // cc.evt: the facts' queue, if any
	HeaderCall           = "call_id"         // cc.evt: the facts' call, if any
	// cc.evt: queues of the facts' agent other than its queue, separated by QueueSeparator
	HeaderAgentQueues = "agent_queues"
	HeaderPosition    = "source_position" // cc.evt, cdr: Position of the raw record
	HeaderSourceLog   = "source_log"      // cc.evt, cdr: the raw log of HeaderPosition: topic id/leader epoch
	HeaderOrigination = "origination_call_id"
	// cdr: "1" if further records may have its call_id, of which the best is the row
	HeaderOneOfSeveral   = "one_of_several"
	HeaderSettledOutcome = "outcome"         // cc.dead: of a settlement, see ingest/deadletter
	HeaderSettledOffsets = "settled_offsets" // cc.dead: of a settlement: offsets of letters
	HeaderErrorKind      = "error_kind"      // cc.dead: the reason, from a bounded set, see Dead*
	HeaderError          = "error"           // cc.dead: the reason as text
	HeaderOrigTopic      = "original_topic"
	HeaderOrigPartition  = "original_partition"
	HeaderOrigOffset     = "original_offset"
)

// QueueSeparator separates the queues in HeaderAgentQueues. Ids that contain it are omitted.
const QueueSeparator = "\x00"

// FormatOwn is the format of Trunkline's own events (call progress, recording stored,
// AI session). The HTTP ingest does not accept it.
const FormatOwn = "trunkline.event"

// FormatPerformance is the format of AGENT_PERFORMANCE messages, created by the role
// stats: an agent's row of cc.stats. The HTTP ingest does not accept it.
const FormatPerformance = "trunkline.performance"

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
