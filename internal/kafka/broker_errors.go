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

// errorFromCode converts a response's error code to an error, nil for success.
func errorFromCode(c int16) error {
	if c == 0 {
		return nil
	}
	return kafkago.Error(c)
}

// asFault gives err a kind: an error code of a broker that is not retriable becomes
// fault.KindTooLarge or fault.KindInternal; all other errors (a broken connection, a
// deadline) become fault.KindUnavailable. A fault is returned unchanged; the error of a
// canceled context gets no kind.
func asFault(err error, action string) error {
	if err == nil {
		return nil
	}

	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", action, err)
	}

	if brokerErr, ok := errors.AsType[kafkago.Error](err); ok && !retriable(err) {
		switch brokerErr {
		case kafkago.MessageSizeTooLarge, kafkago.RecordListTooLarge:
			return &fault.Error{Kind: fault.KindTooLarge, Message: "the record is too large for its topic",
				Cause: errors.Join(ErrTopicLimit, err)}
		default:
			return fault.Internal(err, "Kafka refused: "+action)
		}
	}

	return fault.Unavailable(err, retryAfter, "Kafka is not available")
}

// asTopicFault is like asFault for a request about a topic or one of its partitions: an
// unknown topic or partition becomes fault.KindNotFound.
func asTopicFault(err error, topic, action string) error {
	if errors.Is(err, kafkago.UnknownTopicOrPartition) {
		return fault.NotFound("no topic %q, or no such partition", topic)
	}
	return asFault(err, action)
}

// AwaitMissing converts the error of a missing topic or partition to
// fault.KindUnavailable, for callers that wait until it exists: a topic that follows
// another gets its partitions a little later, and a deleted one may be made again.
func AwaitMissing(err error) error {
	if fault.KindOf(err) != fault.KindNotFound {
		return err
	}
	return fault.Unavailable(err, retryAfter, "a topic or a partition is missing")
}

// retriable reports whether the same request may succeed later. Every error other than
// a broker's error code came from the network and is retriable. So are rejected
// credentials: each connection uses the current ones, and files and tokens are renewed
// without a restart.
func retriable(err error) bool {
	brokerErr, _ := errors.AsType[kafkago.Error](err)
	switch brokerErr {
	case kafkago.RequestTimedOut, kafkago.NetworkException, kafkago.GroupLoadInProgress,
		kafkago.GroupCoordinatorNotAvailable,
		kafkago.NotCoordinatorForGroup, kafkago.NotEnoughReplicas, kafkago.NotEnoughReplicasAfterAppend,
		kafkago.NotController,
		kafkago.OffsetNotAvailable, kafkago.PreferredLeaderNotAvailable, kafkago.EligibleLeadersNotAvailable,
		kafkago.ThrottlingQuotaExceeded, kafkago.InvalidMessage, kafkago.Unknown, kafkago.SASLAuthenticationFailed:
		return true
	}

	return staleLeader(err)
}

// staleLeader reports whether err may mean that the partition has another leader, so
// that the leader must be looked up again.
func staleLeader(err error) bool {
	brokerErr, ok := errors.AsType[kafkago.Error](err)
	if !ok {
		return true
	}

	switch brokerErr {
	case kafkago.UnknownTopicOrPartition, kafkago.UnknownTopicID, kafkago.InconsistentTopicID,
		kafkago.LeaderNotAvailable, kafkago.NotLeaderForPartition,
		kafkago.ReplicaNotAvailable, kafkago.BrokerNotAvailable, kafkago.KafkaStorageError,
		kafkago.FencedLeaderEpoch, kafkago.UnknownLeaderEpoch, kafkago.ListenerNotFound:
		return true
	}

	return false
}

// reasonLabel returns err as a metric label with a bounded set of values.
func reasonLabel(err error) string {
	var brokerErr kafkago.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case !errors.As(err, &brokerErr):
		return "network"
	case staleLeader(err):
		return "leader"
	case brokerErr == kafkago.RequestTimedOut:
		return "timeout"
	case brokerErr == kafkago.NotEnoughReplicas, brokerErr == kafkago.NotEnoughReplicasAfterAppend:
		return "replicas"
	case brokerErr == kafkago.OutOfOrderSequenceNumber, brokerErr == kafkago.UnknownProducerId,
		brokerErr == kafkago.InvalidProducerEpoch, brokerErr == kafkago.InvalidProducerIDMapping:
		return "sequence"
	case brokerErr == kafkago.MessageSizeTooLarge, brokerErr == kafkago.RecordListTooLarge:
		return "size"
	case brokerErr == kafkago.TopicAuthorizationFailed, brokerErr == kafkago.GroupAuthorizationFailed,
		brokerErr == kafkago.ClusterAuthorizationFailed, brokerErr == kafkago.SASLAuthenticationFailed:
		return "authorization"
	}

	return "other"
}

var reasonLabels = []string{"offset", "corrupt", "timeout", "network", "leader", "replicas", "sequence", "size",
	"authorization", "other"}
