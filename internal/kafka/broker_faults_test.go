package kafka_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
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

// damagedWire flips a byte in fetch responses while there are flips left.
type damagedWire struct {
	net.Conn
	flips  *atomic.Int32
	before int // the byte flipped lies that far before the value
}

func (d *damagedWire) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	// Values are runs of 'x' that nothing else has.
	for i := range n - 8 {
		if string(p[i:i+8]) == "xxxxxxxx" && i >= d.before && d.flips.Add(-1) >= 0 {
			p[i-d.before] ^= 1
			break
		}
	}
	return n, err
}

func TestDamagedBatchIsReadAgainAndThenReported(t *testing.T) {
	_, fake, _ := openFake(t)
	var flips atomic.Int32
	c, err := kafka.Open(t.Context(), kafka.Config{
		Settings: kafka.DefaultSettings(fake.ListenAddrs()...),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &damagedWire{conn, &flips, 0}, err
		},
	}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	produce(t, c, numbered(0, 0, 5)...)
	produce(t, c, kafka.Record{Topic: "t", Value: []byte("xxxxxxxxxxxxxxxxxxxxxxx")}, kafka.Record{Topic: "t"})
	produce(t, c, numbered(0, 7, 1)...)

	flips.Store(1)
	if got := readAll(t, c, "t", 0, 0); len(got) != 8 {
		t.Errorf("damaged on its way once: %d records", len(got))
	}

	flips.Store(1000)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	before, err := r.Read(t.Context())
	if err != nil || len(before) != 5 {
		t.Fatalf("what lies before the damage: %d records, %v", len(before), err)
	}

	_, err = r.Read(t.Context())
	damage, ok := kafka.PassableGap(err)
	if !ok || damage.Kind != kafka.GapDamaged || damage.Topic != "t" || damage.Partition != 0 || damage.Offset != 5 ||
		damage.Resume != 7 {
		t.Fatalf("got %v", err)
	}
	if _, err := r.Read(t.Context()); !errors.As(err, &damage) || damage.Resume != 7 {
		t.Errorf("asked again: %v", err)
	}

	past := c.NewReader("t", 0, damage.Resume)
	defer past.Close()

	if after, err := past.Read(t.Context()); err != nil || len(after) != 1 ||
		string(after[0].Value) != strconv.Itoa(7) {
		t.Errorf("past the damage: %v, %v", after, err)
	}
}

// Where the header of a batch is damaged too, its length is not known. The
// reader finds where the log continues, so that a consumer is not blocked for ever.
func TestTheEndOfABatchWithADamagedHeaderIsFound(t *testing.T) {
	_, fake, _ := openFake(t)

	var flips atomic.Int32
	const magicBeforeValue = 51 // of a batch's first record without a key
	c, err := kafka.Open(t.Context(), kafka.Config{
		Settings: kafka.DefaultSettings(fake.ListenAddrs()...),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			return &damagedWire{conn, &flips, magicBeforeValue}, err
		},
	}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	damaged := []kafka.Record{{Topic: "t", Value: []byte("xxxxxxxxxxxxxxxxxxxxxxx")}}
	for range 40 {
		damaged = append(damaged, kafka.Record{Topic: "t"})
	}

	produce(t, c, numbered(0, 0, 5)...)
	produce(t, c, damaged...)
	produce(t, c, numbered(0, 46, 3)...)
	flips.Store(1 << 20)

	for _, from := range []int64{0, 5, 20} {
		r := c.NewReader("t", 0, from)
		defer r.Close()

		if from == 0 {
			if before, err := r.Read(t.Context()); err != nil || len(before) != 5 {
				t.Fatalf("what lies before the damage: %d records, %v", len(before), err)
			}
		}

		_, err := r.Read(t.Context())
		if gap, ok := kafka.PassableGap(err); !ok || gap.Kind != kafka.GapDamaged || gap.Offset != max(from, 5) ||
			gap.Resume != 46 {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

func TestMetricsCountWhatHappens(t *testing.T) {
	c, fake, reg := openFake(t)
	refuseOnce(fake, kerr.NotLeaderForPartition.Code)
	produce(t, c, numbered(0, 0, 10)...)
	readAll(t, c, "t", 0, 0)

	for name, want := range map[string]float64{
		"trunkline_kafka_produced_records_total":  10,
		"trunkline_kafka_consumed_records_total":  10,
		"trunkline_kafka_produce_retries_total":   1,
		"trunkline_kafka_produce_in_flight_bytes": 0,
	} {
		if got := metricValue(t, reg, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}

	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// metricValue returns the sum over a metric's labels.
func metricValue(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() != name {
			continue
		}

		for _, m := range f.Metric {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}

		return sum
	}

	t.Errorf("no metric %s", name)
	return 0
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
