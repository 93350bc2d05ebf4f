package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// service is one Kafka that the suite runs against.
type service struct {
	config  kafka.Config
	stamps  bool               // honours LogAppendTime
	restart func(t *testing.T) // restarts a broker; nil: it is not this test's own
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openEmbedded(t testing.TB, dir string) *embedded.Broker {
	t.Helper()
	b, err := embedded.Open(embedded.Config{Dir: dir}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()

	b := openEmbedded(t, dir)
	var mu sync.RWMutex
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.RLock()
		defer mu.RUnlock()
		return b.Dial(ctx, network, address)
	}

	suite(t, service{
		config: kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: dial},
		restart: func(t *testing.T) {
			mu.Lock()
			defer mu.Unlock()
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b = openEmbedded(t, dir)
		},
	})

	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// suite is what every Kafka must do under our client.
func suite(t *testing.T, s service) {
	cases := []struct {
		name string
		run  func(*testing.T, service)
	}{
		{"an absent topic is not found", absentTopic},
		{"what is produced is read back whole", roundTrip},
		{"concurrent producers keep their order", order},
		{"keys go where the Java client puts them", keyPartitions},
		{"a record too large is refused before anything is sent", recordTooLarge},
		{"records that fit their topic are stored beside one that does not", topicLimit},
		{"a produce whose answer is lost is written once", lostAnswer},
		{"a producer tells where its records are", producedOffsets},
		{"an offset outside the log is an error", outside},
		{"offsets are found by time", byTime},
		{"the last record is found", lastRecord},
		{"a position is good as long as the log goes on there", positions},
		{"a position outlives a restart", positionsSurviveRestart},
		{"a position of a topic that was created again is refused", positionsOfAnotherTopic},
		{"a group resumes where it committed", groupResumes},
		{"two members share a group and lose nothing", groupShares},
		{"work that fails is started again", workRestarts},
		{"new partitions are read within seconds", newPartitions},
		{"topics are made with their settings", topicSettings},
		{"deleted topics are made again", deletedTopics},
		{"the broker stamps raw topics", appendTime},
		{"clients survive a restart of the broker", restarts},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

// open gives a cluster of the test's own topics.
func (s service) open(t testing.TB) *kafka.Cluster {
	t.Helper()
	cfg := s.config
	if cfg.TopicPrefix == "" {
		cfg.TopicPrefix = fmt.Sprintf("t%d.", time.Now().UnixNano())
	}

	c, err := kafka.Open(t.Context(), cfg, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	return c
}

// openWithTopic gives a cluster that has the topic t.
func (s service) openWithTopic(t testing.TB, partitions int) *kafka.Cluster {
	t.Helper()
	c := s.open(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: partitions,
		Config: map[string]string{"max.message.bytes": strconv.Itoa(topics.MaxRecordBytes)}})
	return c
}

func ensure(t testing.TB, c *kafka.Cluster, specs ...topics.Spec) {
	t.Helper()
	if err := c.EnsureTopics(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
}

func produce(t testing.TB, c *kafka.Cluster, records ...kafka.Record) {
	t.Helper()
	p := c.NewProducer(kafka.ProducerConfig{})
	if err := p.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// numbered returns n records of topic t whose values are the numbers from a first one on.
func numbered(partition, from, n int) []kafka.Record {
	records := make([]kafka.Record, n)
	for i := range records {
		records[i] = kafka.Record{Topic: "t", Partition: partition, Value: fmt.Append(nil, from+i)}
	}
	return records
}

// readAll reads a partition from offset up to its end.
func readAll(t testing.TB, c *kafka.Cluster, topic string, partition int, offset int64) []*kafka.Record {
	t.Helper()
	_, next, err := c.Offsets(t.Context(), topic, partition)
	if err != nil {
		t.Fatal(err)
	}

	r := c.NewReader(topic, partition, offset)
	defer r.Close()

	var all []*kafka.Record
	for r.Next() < next {
		records, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		for i := range records {
			all = append(all, records[i].Clone())
		}
	}

	return all
}

func absentTopic(t *testing.T, s service) {
	c := s.open(t)
	if _, err := c.Partitions(t.Context(), "absent"); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("partitions: %v", err)
	}
	if _, _, err := c.Offsets(t.Context(), "absent", 0); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("offsets: %v", err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func recordTooLarge(t *testing.T, s service) {
	c := s.openWithTopic(t, 1)
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	err := p.Produce(t.Context(), kafka.Record{Topic: "t", Value: []byte("small")},
		kafka.Record{Topic: "t", Value: make([]byte, topics.MaxRecordBytes)})
	if fault.KindOf(err) != fault.KindTooLarge {
		t.Errorf("got %v", err)
	}

	if first, next, err := c.Offsets(t.Context(), "t", 0); first != 0 || next != 0 || err != nil {
		t.Errorf("the log holds %d to %d, %v", first, next, err)
	}
}

// topicLimit has a topic whose limit is far below the size of a batch.
func topicLimit(t *testing.T, s service) {
	const limit = 20_000
	c := s.open(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 2,
		Config: map[string]string{"max.message.bytes": strconv.Itoa(limit)}})
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	at := time.Now().Truncate(time.Millisecond)
	var sent []kafka.Record
	for n := range 40 {
		sent = append(sent, kafka.Record{Topic: "t", Partition: 1, Time: at.Add(time.Duration(n%7) * time.Second),
			Key: fmt.Append(nil, n), Value: bytes.Repeat([]byte{byte(n)}, 3000),
			Headers: []kafka.Header{{Key: "n", Value: fmt.Append(nil, n)}}})
	}

	if err := p.Produce(t.Context(), sent...); err != nil {
		t.Fatalf("records that fit: %v", err)
	}

	large := kafka.Record{Topic: "t", Partition: 1, Value: make([]byte, 2*limit)}
	mixed := append(append([]kafka.Record(nil), sent[:13]...), large)
	mixed = append(mixed, sent[13:]...)
	if err := p.Produce(t.Context(), mixed...); fault.KindOf(err) != fault.KindTooLarge ||
		!errors.Is(err, kafka.ErrTopicLimit) {
		t.Errorf("with one that does not: %v", err)
	}
	if err := p.Produce(t.Context(), sent[0]); err != nil {
		t.Errorf("after it: %v", err)
	}

	got := readAll(t, c, "t", 1, 0)
	if len(got) != 81 {
		t.Fatalf("%d records", len(got))
	}

	for i, g := range got {
		if want := sent[i%40]; !same(g.Key, want.Key) || !same(g.Value, want.Value) || !g.Time.Equal(want.Time) ||
			string(g.Header("n")) != string(want.Key) {
			t.Fatalf("record %d is %s of %v, want %s of %v", i, g.Key, g.Time, want.Key, want.Time)
		}
	}
}

func outside(t *testing.T, s service) {
	c := s.openWithTopic(t, 1)
	produce(t, c, numbered(0, 0, 10)...)
	for _, offset := range []int64{-1, 11, 1000} {
		r := c.NewReader("t", 0, offset)
		_, err := r.Read(t.Context())
		gap, ok := kafka.PassableGap(err)
		if !ok || gap.Offset != offset || gap.First != 0 || gap.Next != 10 || gap.Resume != min(max(offset, 0), 10) ||
			gap.Kind == kafka.GapExpired != (offset < 0) || gap.Kind == kafka.GapTruncated != (offset > 10) {
			t.Errorf("from %d: %v", offset, err)
		}

		r.Close()
	}
}

func byTime(t *testing.T, s service) {
	c := s.openWithTopic(t, 1)
	base := time.Now().Truncate(time.Millisecond).Add(-time.Minute)

	records := numbered(0, 0, 10)
	for i := range records {
		records[i].Time = base.Add(time.Duration(i) * time.Second)
	}

	produce(t, c, records...)
	for _, test := range []struct {
		at   time.Time
		want int64
	}{
		{time.Unix(0, 0), 0}, {base, 0}, {base.Add(1), 0}, {base.Add(time.Millisecond), 1},
		{base.Add(9 * time.Second), 9}, {base.Add(time.Hour), 10},
	} {
		if got, err := c.OffsetAt(t.Context(), "t", 0, test.at); got != test.want || err != nil {
			t.Errorf("at %v: %d, %v, want %d", test.at, got, err, test.want)
		}
	}
}

func lastRecord(t *testing.T, s service) {
	c := s.openWithTopic(t, 1)
	if last, err := c.LastRecord(t.Context(), "t", 0); last != nil || err != nil {
		t.Errorf("of an empty partition: %v, %v", last, err)
	}
	produce(t, c, numbered(0, 0, 100)...)
	last, err := c.LastRecord(t.Context(), "t", 0)
	if err != nil || last == nil || last.Offset != 99 || string(last.Value) != "99" {
		t.Errorf("got %v, %v", last, err)
	}
}
