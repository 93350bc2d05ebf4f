package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

func topicSettings(t *testing.T, s service) {
	c := s.open(t)
	var nodes sync.WaitGroup
	for range 3 { // nodes that start together
		nodes.Go(func() {
			if err := c.EnsureTopics(t.Context(), topics.All(4)); err != nil {
				t.Error(err)
			}
		})
	}

	nodes.Wait()
	found, err := c.Topics(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if len(found) != len(topics.All(4)) {
		t.Fatalf("topics %v", found)
	}

	want := map[string]int{}
	for _, spec := range topics.All(4) {
		want[spec.Name] = spec.Partitions
	}

	for _, topic := range found {
		if topic.Partitions != want[topic.Name] || topic.ReplicationFactor < 1 {
			t.Errorf("topic %+v, want %d partitions", topic, want[topic.Name])
		}
	}

	if want[event.TopicRaw] != 4 {
		t.Errorf("topic %s is to have %d partitions", event.TopicRaw, want[event.TopicRaw])
	}
	if problems, err := c.CheckTopics(t.Context(), topics.All(4)); len(problems) != 0 || err != nil {
		t.Errorf("problems %v, %v", problems, err)
	}
	if err := c.EnsurePartitions(t.Context(), event.TopicRaw, 6); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureTopics(t.Context(), topics.All(4)); err != nil {
		t.Fatal(err)
	}

	for _, topic := range []string{event.TopicEvents, event.TopicState} {
		if n, err := c.Partitions(t.Context(), topic); n != 6 || err != nil {
			t.Errorf("%s has %d partitions, %v", topic, n, err)
		}
	}

	if err := c.EnsurePartitions(t.Context(), event.TopicRaw, 1025); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("growing beyond what ids can hold: %v", err)
	}

	produce(t, c, kafka.Record{Topic: event.TopicRaw, Value: make([]byte, 1<<20),
		Headers: []kafka.Header{{Key: "h", Value: make([]byte, 100<<10)}}})
}

func appendTime(t *testing.T, s service) {
	if !s.stamps {
		t.Skip("this broker takes the producer's time")
	}

	c := s.open(t)
	ensure(t, c, topics.All(1)...)
	produce(t, c, kafka.Record{Topic: event.TopicRaw, Time: time.Unix(1_000_000_000, 0), Value: []byte("v")})
	r := readAll(t, c, event.TopicRaw, 0, 0)[0]
	if since := time.Since(r.Time); since < -time.Minute || since > time.Minute {
		t.Errorf("stamped %v ago", since)
	}
}

// A topic that is deleted while the process runs is made again, with the partitions of its partners, and is
// usable; without the right to make topics it is reported.
func deletedTopics(t *testing.T, s service) {
	if s.config.SASL.Mechanism != "" {
		t.Skip("shown without a login")
	}

	s.config.TopicPrefix = fmt.Sprintf("deleted%d.", time.Now().UnixNano())
	c := s.open(t)
	specs := topics.All(2)
	ensure(t, c, specs...)

	if err := c.EnsurePartitions(t.Context(), event.TopicRaw, 3); err != nil {
		t.Fatal(err)
	}

	keep := func(create bool) func() {
		ctx, stop := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		keeping.Go(func() { _ = c.KeepTopics(ctx, specs, create) })
		return func() { stop(); keeping.Wait() }
	}

	stop := keep(true)
	until(t, "topics follow cc.raw", func() bool {
		n, err := c.Partitions(t.Context(), event.TopicState)
		return n == 3 && err == nil
	})

	stop()

	for _, name := range []string{event.TopicAccounts, event.TopicState, event.TopicRaw} {
		s.deleteTopic(t, s.config.TopicPrefix+name)
	}

	stop = keep(false)
	until(t, "they are missing", func() bool { return len(c.MissingTopics()) == 3 })
	stop()
	stop = keep(true)
	defer stop()

	for name, want := range map[string]int{event.TopicAccounts: 1, event.TopicState: 3, event.TopicRaw: 3} {
		until(t, name+" is there again", func() bool {
			n, err := c.Partitions(t.Context(), name)
			return n == want && err == nil
		})
	}

	until(t, "none is missing", func() bool { return len(c.MissingTopics()) == 0 })
	if problems, err := c.CheckTopics(t.Context(), specs); len(problems) != 0 || err != nil {
		t.Errorf("problems %v, %v", problems, err)
	}

	produce(t, c, kafka.Record{Topic: event.TopicRaw, Partition: 2, Value: []byte("in the new one")})
	if all := readAll(t, c, event.TopicRaw, 2, 0); len(all) != 1 {
		t.Errorf("%d records in the new topic", len(all))
	}
}
