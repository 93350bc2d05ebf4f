package explain

import (
	"context"
	"encoding/json"
	"time"

	"trunkline/event"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/webhook"
)

// Log reads topics; *kafka.Cluster implements it.
type Log interface {
	// Partitions returns the number of partitions of a topic. It is not cached.
	Partitions(ctx context.Context, topic string) (int, error)
	// Offsets returns the first offset of a partition and the offset of its next record.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// OffsetAt returns the first offset whose record has a timestamp at or after at, or the offset
	// of the next record if there is none.
	OffsetAt(ctx context.Context, topic string, partition int, at time.Time) (int64, error)
	// Scan calls each for the records of a partition with offsets in [from, to), in order. It skips
	// deleted and damaged records; if the end of the damage is unknown, it skips the rest. A record
	// is valid during its call only. Scan returns fault.KindUnavailable if the log was truncated
	// during the scan.
	Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*kafka.Record)) error
}

// Connections returns the outcomes of an event at the connections of all nodes;
// fanout.Explainer implements it.
type Connections interface {
	Explain(ctx context.Context, q fanout.Question) fanout.Report
}

// Webhooks explains an event at the webhooks; *webhook.Service implements it.
type Webhooks interface {
	Explain(ctx context.Context, q webhook.Question, tree *identity.Tree) ([]webhook.Explanation, error)
}

// Accounts has the tree of accounts.
type Accounts interface {
	// Tree returns the current tree, which does not change.
	Tree() *identity.Tree
}

// Service explains events. It is safe for concurrent use.
type Service struct {
	LogReader   Log
	Connections Connections
	Webhooks    Webhooks
	Accounts    Accounts
}

// Question is a request for an explanation.
type Question struct {
	ID     event.ID
	Root   string // account of the caller, who sees it and those below it
	Client string // only the connection with this id; "" all
	User   string // only connections of this user (id or name) or API key (id); "" all
}

// Explanation is the result.
type Explanation struct {
	Event     Event
	Raw       Raw
	Format    Format
	Account   Account
	Facts     []Fact
	Delivery  fanout.Report
	Webhooks  []webhook.Explanation
	Explained time.Time // when the explanation was made: later the outcomes may be others
}

// Event is the message and its position.
type Event struct {
	ID       event.ID
	Position event.Position  // in cc.evt
	Message  json.RawMessage // as subscribers get it
}

// errEventNotFound is also the error for an event that the caller cannot access.
func errEventNotFound() error { return fault.NotFound("Event not found") }

// Explain explains an event. Returns fault.KindNotFound if there is none or the caller
// cannot access its account, fault.KindGone if the log begins after its id.
func (s *Service) Explain(ctx context.Context, q Question) (*Explanation, error) {
	record, err := s.findRecord(ctx, q.ID)
	if err != nil {
		return nil, err
	}

	message, tree := messageOf(record), s.Accounts.Tree()
	if !tree.Contains(q.Root, message.AccountID) {
		return nil, errEventNotFound()
	}

	e := &Explanation{Explained: time.Now(),
		Event: Event{q.ID, event.Position{Partition: record.Partition, Offset: record.Offset}, record.Value}}
	if err := s.readOrigins(ctx, record, &message, e); err != nil {
		return nil, err
	}

	e.Webhooks, err = s.Webhooks.Explain(ctx,
		webhook.Question{EventID: q.ID, Offset: record.Offset, Message: message, Root: q.Root}, tree)
	if err != nil {
		return nil, err
	}

	e.Delivery = s.Connections.Explain(ctx,
		fanout.Question{EventID: q.ID, Offset: record.Offset, Message: message, Root: q.Root, Client: q.Client,
			User: q.User})

	return e, nil
}

// scanBatchSize is the number of records that are read at once to find one.
const scanBatchSize = 64

// findRecord returns the event's record of cc.evt: the first one with the id, since later
// ones are repeats.
func (s *Service) findRecord(ctx context.Context, id event.ID) (found *kafka.Record, err error) {
	partitions, err := s.LogReader.Partitions(ctx, event.TopicEvents)
	if err != nil {
		return nil, err
	}

	if id.Partition() >= partitions {
		return nil, errEventNotFound()
	}

	first, next, err := s.LogReader.Offsets(ctx, event.TopicEvents, id.Partition())
	if err != nil {
		return nil, err
	}

	from, err := s.LogReader.OffsetAt(ctx, event.TopicEvents, id.Partition(), time.UnixMilli(id.Milli()))
	if err != nil {
		return nil, err
	}

	pastID := false
	for offset := from; offset < next && found == nil && !pastID; offset += scanBatchSize {
		err := s.LogReader.Scan(ctx, event.TopicEvents, id.Partition(), offset, min(offset+scanBatchSize, next),
			func(r *kafka.Record) {
				recordID, err := event.MessageID(r.Value)
				if err != nil { // of another program
					return
				}

				if recordID == id && found == nil {
					found = r.Clone()
				}

				pastID = pastID || recordID > id
			})
		if err != nil {
			return nil, err
		}
	}

	switch {
	case found != nil && json.Valid(found.Value):
		return found, nil
	case found != nil: // of another program
	case from <= first && first > 0:
		return nil, fault.New(fault.KindGone, "The log does not reach back to this event")
	}

	return nil, errEventNotFound()
}

// messageOf returns the fields of a record of cc.evt that filters match.
func messageOf(r *kafka.Record) identity.Message {
	text := func(header string) string { return string(r.Header(header)) }
	return identity.Message{
		AccountID: text(event.HeaderAccount), Type: event.Type(text(event.HeaderType)),
		Format: text(event.HeaderOriginalFormat),
		Name:   event.Name(text(event.HeaderName)), AgentID: text(event.HeaderAgent), QueueID: text(event.HeaderQueue),
		CallID:      text(event.HeaderCall),
		OtherQueues: text(event.HeaderAgentQueues),
	}
}
