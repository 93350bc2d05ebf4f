package event

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
	HeaderPosition    = "source_position"     // cc.evt, cdr: Position of the raw record
	HeaderSourceLog   = "source_log"          // cc.evt, cdr: the raw log of HeaderPosition: topic id/leader epoch
	HeaderOrigination = "origination_call_id" // cdr: the row's origination_call_id, if any
	// cdr: "1" if further records may have its call_id, of which the best is the row
	HeaderOneOfSeveral   = "one_of_several"
	HeaderSettledOutcome = "outcome"         // cc.dead: of a settlement, see ingest/deadletter
	HeaderSettledOffsets = "settled_offsets" // cc.dead: of a settlement: offsets of letters
	HeaderErrorKind      = "error_kind"      // cc.dead: the reason, from a bounded set, such as package format's Kind
	HeaderError          = "error"           // cc.dead: the reason as text
	HeaderOrigTopic      = "original_topic"  // cc.dead: where the raw record is, with the next two
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
