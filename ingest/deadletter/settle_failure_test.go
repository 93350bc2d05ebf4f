package deadletter

import (
	"log/slog"
	"testing"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// TestNothingIsKeptAfterLettersCouldNotBeSettled: what is kept for the next round would grow with the
// partition, since no round follows.
func TestNothingIsKeptAfterLettersCouldNotBeSettled(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	broker, err := embedded.Open(embedded.Config{Dir: t.TempDir()}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()

	cluster, err := kafka.Open(t.Context(),
		kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: broker.Dial}, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()

	if err := cluster.EnsureTopics(t.Context(), []topics.Spec{{Name: event.TopicDead, Partitions: 1}}); err != nil {
		t.Fatal(err)
	}

	var dead []kafka.Record
	for range 3 * maxSettled {
		dead = append(dead, kafka.Record{Topic: event.TopicDead, Value: []byte("{}"),
			Headers: []kafka.Header{{Key: event.HeaderOrigTopic, Value: []byte(event.TopicRaw)}}})
	}

	producer := cluster.NewProducer(kafka.ProducerConfig{})
	if err := producer.Produce(t.Context(), dead...); err != nil {
		t.Fatal(err)
	}
	if err := producer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	seen := 0
	letters := New(Deps{LogReader: cluster, Producer: producer}) // which is closed
	settled, err := letters.SettleOpen(t.Context(), Discarded, Filter{Sees: func(*Letter) bool {
		seen++
		return true
	}})
	if err == nil || settled != 0 || seen != maxSettled {
		t.Errorf("settled %d, selected %d letters, want %d: %v", settled, seen, maxSettled, err)
	}
}
