package kafka_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// TestKilledBrokerKeepsWhatItAcknowledged kills an embedded broker in the
// middle of its work, several times over one directory.
func TestKilledBrokerKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[int64]string{} // by offset, as far as is known
	next := 0

	for round := range 4 {
		address, kill := startChildBroker(t, "embedded:"+dir)
		c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(address)}, nil, quiet())
		if err != nil {
			t.Fatal(err)
		}

		ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
		var log []*kafka.Record
		if round > 0 {
			log = readAll(t, c, "t", 0, 0)
		}

		for i, r := range log {
			if r.Offset != int64(i) {
				t.Fatalf("round %d: offset %d at place %d", round, r.Offset, i)
			}
		}

		for offset, value := range acknowledged {
			if offset >= int64(len(log)) || string(log[offset].Value) != value {
				t.Fatalf("round %d: %s, acknowledged before, is not at offset %d of %d", round, value, offset, len(log))
			}
		}

		p := c.NewProducer(kafka.ProducerConfig{DeliveryTimeout: 30 * time.Second})
		offset := int64(len(log))
		ctx, killed := context.WithCancel(t.Context())
		defer killed()

		for n := 0; ; n++ {
			if n == 100+7*round { // some more are acknowledged before it is gone
				go func() {
					kill()
					killed()
				}()
			}

			if err := p.Produce(ctx,
				kafka.Record{Topic: "t", Value: strconv.AppendInt(nil, int64(next), 10)}); err != nil {
				next++
				break
			}

			acknowledged[offset] = strconv.Itoa(next)
			offset++
			next++
		}

		<-ctx.Done()
		p.Close(ctx)
		c.Close()
	}
}

func TestEndOfTheLogSurvivesTrimmingAndAKill(t *testing.T) {
	dir := t.TempDir()
	fill := func(c *kafka.Cluster) {
		for i := range 5 {
			produce(t, c, numbered(0, 10*i, 10)...)
		}
	}

	for round := range 2 { // clean, then killed
		b, err := embedded.Open(embedded.Config{Dir: dir, MaxBytes: 1, TrimEvery: 10 * time.Millisecond}, quiet())
		if err != nil {
			t.Fatal(err)
		}

		c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial},
			nil, quiet())
		if err != nil {
			t.Fatal(err)
		}

		ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
		_, before, err := c.Offsets(t.Context(), "t", 0)
		if err != nil {
			t.Fatal(err)
		}

		fill(c)
		until(t, "all but the last record trimmed, or some after a restart, when kfake counts bytes differently",
			func() bool {
				first, next, err := c.Offsets(t.Context(), "t", 0)
				return err == nil && next == before+50 && (first == next-1 || round > 0 && first > before)
			})

		c.Close()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}

		address, kill := startChildBroker(t, "embedded:"+dir)
		c, err = kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(address)}, nil, quiet())
		if err != nil {
			t.Fatal(err)
		}

		if _, next, err := c.Offsets(t.Context(), "t", 0); next != before+50 || err != nil {
			t.Errorf("after a restart the log ends at %d, want %d, %v", next, before+50, err)
		}

		kill()
		c.Close()
	}
}
