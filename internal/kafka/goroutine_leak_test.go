package kafka_test

import (
	"testing"

	"go.uber.org/goleak"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

func TestNothingIsLeftRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	b := openEmbedded(t, t.TempDir())
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial},
		nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	ensure(t, c, topics.Spec{Name: "t", Partitions: 2})
	produce(t, c, numbered(0, 0, 10)...)
	k := newCollector()
	leave := join(t, c, k.work(c), "t")
	k.await(t, "the records", func() bool { return len(k.seen) == 10 })
	leave()
	c.Close()

	if err := b.Close(); err != nil {
		t.Error(err)
	}

	goleak.VerifyNone(t, before)
}
