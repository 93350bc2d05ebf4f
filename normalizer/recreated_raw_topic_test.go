package normalizer_test

import (
	"context"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/testservice"
)

// recreateTopic deletes a topic, and creates it once it is gone.
func recreateTopic(t *testing.T, c *kafka.Cluster, brokers []string, prefix, name string) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(brokers...)}
	res, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: []string{prefix + name}})
	if err == nil {
		err = res.Errors[prefix+name]
	}
	if err != nil {
		t.Fatal(err)
	}

	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		topics, err := c.Topics(t.Context())
		there := err != nil
		for _, topic := range topics {
			there = there || topic.Name == name
		}

		if !there {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is still there: %v", name, err)
		}
	}

	if err := c.EnsureTopics(t.Context(), topics.All(1)); err != nil {
		t.Fatal(err)
	}
}

// cc.raw is deleted and created again on an Apache Kafka: what was normalized
// keeps its ids, and every record of the new topic is normalized once, although
// its offsets were used before.
func TestRawTopicCreatedAgainOnApacheKafka(t *testing.T) {
	for name, running := range map[string]bool{"while the normalizer runs": true, "while it is down": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokers, prefix := testservice.Kafka(t), testservice.Prefix(t)
			settings := kafka.DefaultSettings(brokers...)
			settings.TopicPrefix = prefix

			c := kafkatest.Open(t, kafka.Config{Settings: settings}, 1)
			producer := func() *kafka.Producer { // of other programs, which know nothing of the topic before
				p := c.NewProducer(kafka.ProducerConfig{})
				t.Cleanup(func() { _ = p.Close(context.Background()) })
				return p
			}

			const before, after = 60, 90
			own := producer()
			stop := startNormalizer(t, c, own)
			defer func() { stop() }()

			produceRaw(t, producer(), 0, before)
			had, _ := awaitEvents(t, c, before)
			if !running {
				stop()
			}

			recreateTopic(t, c, brokers, prefix, event.TopicRaw)
			produceRaw(t, producer(), before, before+after)
			if !running {
				stop = startNormalizer(t, c, own)
			}

			ids, last := awaitEvents(t, c, before+after)
			for number, id := range had {
				if ids[number] != id {
					t.Errorf("%s had the id %v, now %v", number, id, ids[number])
				}
			}

			if want := (event.Position{Offset: after - 1, Generation: 1}); last != want {
				t.Errorf("the last position is %v, want %v", last, want)
			}

			// The next takeover continues in the new topic.
			stop()
			produceRaw(t, producer(), before+after, before+after+10)
			stop = startNormalizer(t, c, own)
			_, last = awaitEvents(t, c, before+after+10)
			if last.Generation != 1 || last.Offset != after+9 {
				t.Errorf("after another takeover the last position is %v", last)
			}
		})
	}
}
