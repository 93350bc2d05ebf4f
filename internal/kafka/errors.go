package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/fault"
)

// ErrOutcomeUnknown is in the chain of a produce error when the records may or
// may not have been written.
var ErrOutcomeUnknown = errors.New("it is not known whether Kafka has the records")

// ErrTopicLimit is in the chain of a produce error when a record is larger than
// its topic's max.message.bytes. Every other record of the call is durable.
var ErrTopicLimit = errors.New("larger than the topic's max.message.bytes")

// retryAfter is the Retry-After of errors while Kafka is unavailable.
const retryAfter = 2 * time.Second

// code converts a response's error code to an error, nil for success.
func code(c int16) error {
	if c == 0 {
		return nil
	}
	return kafkago.Error(c)
}

// away gives err a kind: a broker's refusal keeps its meaning; all other errors (a
// broken connection, a deadline) become fault.KindUnavailable. A fault is returned
// unchanged.
func away(err error, doing string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if refusal, ok := errors.AsType[kafkago.Error](err); ok && !retriable(err) {
		switch refusal {
		case kafkago.MessageSizeTooLarge, kafkago.RecordListTooLarge:
			return &fault.Error{Kind: fault.KindTooLarge, Message: "the record is too large for its topic", Cause: errors.Join(ErrTopicLimit, err)}
		default:
			return fault.Internal(err, "Kafka refused: "+doing)
		}
	}
	return fault.Unavailable(err, retryAfter, "Kafka is not available")
}

// notFound is like away for a request about a topic or one of its partitions: an
// unknown topic or partition becomes fault.KindNotFound.
func notFound(err error, topic, doing string) error {
	if errors.Is(err, kafkago.UnknownTopicOrPartition) {
		return fault.NotFound("no topic %q, or no such partition", topic)
	}
	return away(err, doing)
}

// retriable reports whether the same request may succeed later. Every error other than
// a broker's error code came from the network and is retriable. So are rejected
// credentials: each connection uses the current ones, and files and tokens are renewed
// without a restart.
func retriable(err error) bool {
	refusal, _ := errors.AsType[kafkago.Error](err)
	switch refusal {
	case kafkago.RequestTimedOut, kafkago.NetworkException, kafkago.GroupLoadInProgress, kafkago.GroupCoordinatorNotAvailable,
		kafkago.NotCoordinatorForGroup, kafkago.NotEnoughReplicas, kafkago.NotEnoughReplicasAfterAppend, kafkago.NotController,
		kafkago.OffsetNotAvailable, kafkago.PreferredLeaderNotAvailable, kafkago.EligibleLeadersNotAvailable,
		kafkago.ThrottlingQuotaExceeded, kafkago.InvalidMessage, kafkago.Unknown, kafkago.SASLAuthenticationFailed:
		return true
	}
	return staleLeader(err)
}

// staleLeader reports whether err may mean that the partition has another leader, so
// that the leader must be looked up again.
func staleLeader(err error) bool {
	refusal, ok := errors.AsType[kafkago.Error](err)
	if !ok {
		return true
	}
	switch refusal {
	case kafkago.UnknownTopicOrPartition, kafkago.UnknownTopicID, kafkago.InconsistentTopicID,
		kafkago.LeaderNotAvailable, kafkago.NotLeaderForPartition,
		kafkago.ReplicaNotAvailable, kafkago.BrokerNotAvailable, kafkago.KafkaStorageError,
		kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch, kafkago.ListenerNotFound:
		return true
	}
	return false
}

// reason returns err as a metric label with a bounded set of values.
func reason(err error) string {
	var refusal kafkago.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case !errors.As(err, &refusal):
		return "network"
	case staleLeader(err):
		return "leader"
	case refusal == kafkago.RequestTimedOut:
		return "timeout"
	case refusal == kafkago.NotEnoughReplicas, refusal == kafkago.NotEnoughReplicasAfterAppend:
		return "replicas"
	case refusal == kafkago.OutOfOrderSequenceNumber, refusal == kafkago.UnknownProducerId,
		refusal == kafkago.InvalidProducerEpoch, refusal == kafkago.InvalidProducerIDMapping:
		return "sequence"
	case refusal == kafkago.MessageSizeTooLarge, refusal == kafkago.RecordListTooLarge:
		return "size"
	case refusal == kafkago.TopicAuthorizationFailed, refusal == kafkago.GroupAuthorizationFailed,
		refusal == kafkago.ClusterAuthorizationFailed, refusal == kafkago.SASLAuthenticationFailed:
		return "authorization"
	}
	return "other"
}

var reasons = []string{"offset", "corrupt", "timeout", "network", "leader", "replicas", "sequence", "size", "authorization", "other"}
