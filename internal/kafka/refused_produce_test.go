package kafka_test

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// openFake opens a cluster on a kfake broker in memory, whose responses a test can change.
func openFake(t *testing.T) (*kafka.Cluster, *kfake.Cluster, *prometheus.Registry) {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	reg := prometheus.NewRegistry()
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(fake.ListenAddrs()...)}, reg,
		quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	return c, fake, reg
}

// refuseOnce answers the next produce with an error in place of writing it.
func refuseOnce(fake *kfake.Cluster, code int16) {
	fake.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		asked := req.(*kmsg.ProduceRequest)
		p := kmsg.NewProduceResponseTopicPartition()
		p.Partition, p.ErrorCode = asked.Topics[0].Partitions[0].Partition, code
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = asked.Topics[0].Topic, append(topic.Partitions, p)
		res := asked.ResponseKind().(*kmsg.ProduceResponse)
		res.Topics = append(res.Topics, topic)

		return res, nil, true
	})
}

// Of each error code of a broker a produce knows whether to repeat the batch, to fail, or that the outcome is unknown;
// written tells whether the record is in the log afterwards.
func TestProduceKnowsWhatRefusalsMean(t *testing.T) {
	for _, test := range []struct {
		name    string
		refusal *kerr.Error
		kind    fault.Kind
		unknown bool
		written bool
	}{
		{"the leader has moved: again", kerr.NotLeaderForPartition, "", false, true},
		{"too few replicas: again", kerr.NotEnoughReplicas, "", false, true},
		{"replicas late: again", kerr.NotEnoughReplicasAfterAppend, "", false, true},
		{"out of order, never sent before: under a new id", kerr.OutOfOrderSequenceNumber, "", false, true},
		{"an unknown producer: under a new id", kerr.UnknownProducerID, "", false, true},
		{"an earlier try was written", kerr.DuplicateSequenceNumber, "", false, false},
		{"too large for the topic", kerr.MessageTooLarge, fault.KindTooLarge, false, false},
		{"not allowed", kerr.TopicAuthorizationFailed, fault.KindInternal, false, false},
		// A full disk. The sequence may be taken: a repeat would seem written.
		{"the broker does not say", kerr.UnknownServerError, fault.KindUnavailable, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, fake, _ := openFake(t)
			p := c.NewProducer(kafka.ProducerConfig{})
			defer p.Close(t.Context())

			if err := p.Produce(t.Context(), numbered(0, 0, 1)...); err != nil {
				t.Fatal(err)
			}

			refuseOnce(fake, test.refusal.Code)
			err := p.Produce(t.Context(), numbered(0, 1, 1)...)
			if fault.KindOf(err) != test.kind || errors.Is(err, kafka.ErrOutcomeUnknown) != test.unknown {
				t.Errorf("got %v", err)
			}

			if err := p.Produce(t.Context(), numbered(0, 2, 1)...); test.name != "an earlier try was written" &&
				err != nil {
				t.Errorf("the next record: %v", err)
			}

			var got string
			for _, r := range readAll(t, c, "t", 0, 0) {
				got += string(r.Value)
			}

			want := "02"
			if test.written {
				want = "012"
			}
			if test.name != "an earlier try was written" && got != want {
				t.Errorf("the log holds %s, want %s", got, want)
			}
		})
	}
}

func TestThrottleTimesAreObeyed(t *testing.T) {
	c, fake, _ := openFake(t)
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	const throttle = 400 * time.Millisecond
	var throttled, next time.Time
	fake.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		throttled = time.Now()
		asked := req.(*kmsg.ProduceRequest)
		res := asked.ResponseKind().(*kmsg.ProduceResponse)
		partition := kmsg.NewProduceResponseTopicPartition()
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.Partitions = asked.Topics[0].Topic, append(topic.Partitions, partition)
		res.Topics, res.ThrottleMillis = append(res.Topics, topic), int32(throttle.Milliseconds())

		return res, nil, true
	})

	if err := p.Produce(t.Context(), numbered(0, 0, 1)...); err != nil {
		t.Fatal(err)
	}

	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		next = time.Now()
		return nil, nil, false
	})

	// the broker has not seen the first one: its sequence may be refused once
	_ = p.Produce(t.Context(), numbered(0, 1, 1)...)
	if waited := next.Sub(throttled); waited < throttle {
		t.Errorf("the next request came after %v of %v", waited, throttle)
	}
}
