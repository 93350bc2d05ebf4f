package kafka_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
)

// BenchmarkLatency is the time from Produce to Read on the embedded broker,
// disk and all, one record after the other.
func BenchmarkLatency(b *testing.B) {
	c, _ := openBoth(b)
	ensure(b, c, topics.Spec{Name: "t", Partitions: 1})
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(context.Background())

	arrived := make(chan time.Time)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()

	go func() {
		r := c.NewReader("t", 0, 0)
		defer r.Close()

		for {
			if _, err := r.Read(ctx); err != nil {
				return
			}

			select {
			case arrived <- time.Now():
			case <-ctx.Done():
				return
			}
		}
	}()

	value := benchValue()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := p.Produce(ctx, kafka.Record{Topic: "t", Value: value}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-arrived).Sub(began))
	}

	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
