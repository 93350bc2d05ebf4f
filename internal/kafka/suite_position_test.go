package kafka_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// deleteTopic deletes a topic as an operator would.
func (s service) deleteTopic(t *testing.T, name string) {
	t.Helper()
	opts := []kgo.Opt{kgo.SeedBrokers(s.config.Brokers...)}
	if s.config.Dial != nil {
		opts = append(opts, kgo.Dialer(s.config.Dial))
	}

	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = 10_000
	req.Topics = append(req.Topics, topic)
	req.TopicNames = []string{name}
	res, err := req.RequestWith(t.Context(), client)
	if err != nil || res.Topics[0].ErrorCode != 0 {
		t.Fatalf("deleting %s: %+v, %v", name, res, err)
	}
}

// lastPosition returns the position after the last record of partition 0.
func lastPosition(t *testing.T, c *kafka.Cluster) kafka.LogPosition {
	t.Helper()
	id, err := c.TopicID(t.Context(), "t")
	if err != nil || id.IsZero() {
		t.Fatalf("topic id %v, %v", id, err)
	}

	last, err := c.LastRecord(t.Context(), "t", 0)
	if err != nil || last == nil {
		t.Fatalf("last record %v, %v", last, err)
	}

	return kafka.LogPosition{TopicID: id, Offset: last.Offset + 1, LeaderEpoch: last.LeaderEpoch}
}

func wantGap(t *testing.T, err error, kind kafka.GapKind, resume int64) {
	t.Helper()
	gap, ok := kafka.PassableGap(err)
	if !ok || gap.Kind != kind || gap.Resume != resume || gap.Topic != "t" || gap.Partition != 0 {
		t.Errorf("got %v, want %s with resume %d", err, kind, resume)
	}
}

func positions(t *testing.T, s service) {
	c := s.openWithTopic(t, 1)
	produce(t, c, numbered(0, 0, 10)...)
	at := lastPosition(t, c)
	if at.Offset != 10 || at.LeaderEpoch < 0 {
		t.Fatalf("position %+v", at)
	}

	check := func(change func(*kafka.LogPosition)) error {
		changed := at
		change(&changed)
		return c.CheckPosition(t.Context(), "t", 0, changed)
	}

	for name, change := range map[string]func(*kafka.LogPosition){
		"the end":       func(*kafka.LogPosition) {},
		"in the middle": func(p *kafka.LogPosition) { p.Offset = 5 },
		"the beginning": func(p *kafka.LogPosition) { p.Offset = 0 },
		"an offset alone": func(p *kafka.LogPosition) {
			p.TopicID = kafka.TopicID{}
			p.LeaderEpoch = kafka.UnknownEpoch
		},
	} {
		if err := check(change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	wantGap(t, check(func(p *kafka.LogPosition) { p.Offset = 11 }), kafka.GapTruncated, 10)
	wantGap(t, check(func(p *kafka.LogPosition) { p.Offset, p.LeaderEpoch = 11, kafka.UnknownEpoch }),
		kafka.GapTruncated, 10)
	wantGap(t, check(func(p *kafka.LogPosition) { p.Offset = -1 }), kafka.GapExpired, 0)
	wantGap(t, check(func(p *kafka.LogPosition) { p.TopicID[3]++ }), kafka.GapRecreated, 0)

	if err := check(func(p *kafka.LogPosition) { p.LeaderEpoch += 7 }); err == nil {
		t.Error("an epoch that no leader ever had is taken")
	}

	end, err := c.EpochEnd(t.Context(), "t", 0, at.LeaderEpoch)
	if err != nil || end != (kafka.EpochEnd{LeaderEpoch: at.LeaderEpoch, Offset: 10}) {
		t.Errorf("end of the epoch: %+v, %v", end, err)
	}

	if _, err := c.EpochEnd(t.Context(), "absent", 0, 0); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("an absent topic: %v", err)
	}
	if _, err := c.TopicID(t.Context(), "absent"); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("an absent topic: %v", err)
	}
}

func positionsSurviveRestart(t *testing.T, s service) {
	if s.restart == nil {
		t.Skip("this Kafka belongs to everybody")
	}

	c := s.openWithTopic(t, 1)
	produce(t, c, numbered(0, 0, 10)...)
	before := lastPosition(t, c)
	s.restart(t)

	if err := c.CheckPosition(t.Context(), "t", 0, before); err != nil {
		t.Errorf("before anything is written: %v", err)
	}

	produce(t, c, numbered(0, 10, 10)...)
	if err := c.CheckPosition(t.Context(), "t", 0, before); err != nil {
		t.Errorf("after more was written: %v", err)
	}

	after := lastPosition(t, c)
	if after.TopicID != before.TopicID || after.LeaderEpoch < before.LeaderEpoch {
		t.Errorf("%+v became %+v", before, after)
	}
}

func positionsOfAnotherTopic(t *testing.T, s service) {
	if s.config.SASL.Mechanism != "" {
		t.Skip("shown without a login")
	}

	s.config.TopicPrefix = fmt.Sprintf("recreated%d.", time.Now().UnixNano())
	c := s.openWithTopic(t, 1)
	produce(t, c, numbered(0, 0, 10)...)
	before := lastPosition(t, c)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	if records, err := r.Read(t.Context()); err != nil || len(records) != 10 {
		t.Fatalf("%d records, %v", len(records), err)
	}

	s.deleteTopic(t, s.config.TopicPrefix+"t")
	ensureAgain(t, c)
	produce(t, c, numbered(0, 0, 20)...)

	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := c.CheckPosition(t.Context(), "t", 0, before)
		if gap, ok := kafka.PassableGap(err); ok && gap.Kind == kafka.GapRecreated && gap.Resume == 0 &&
			gap.Next == 20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a position of the topic before: %v", err)
		}
	}

	for range 2 {
		_, err := r.Read(t.Context())
		wantGap(t, err, kafka.GapRecreated, 0)
	}

	if err := c.CheckPosition(t.Context(), "t", 0, lastPosition(t, c)); err != nil {
		t.Errorf("a position of the topic now: %v", err)
	}
}

// ensureAgain creates the topic while its deletion may not be over.
func ensureAgain(t *testing.T, c *kafka.Cluster) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		topics, err := c.Topics(t.Context())
		if err == nil && len(topics) == 0 {
			break
		}

		if time.Now().After(deadline) {
			t.Fatalf("the topic is still there: %v, %v", topics, err)
		}
	}

	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
}
