package normalizer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// The normalizer against a loop that copies the same records from topic to
// topic through the same Kafka layer, one broker each, in one run.
func BenchmarkPipeline(b *testing.B) {
	const partitions, total = 4, 60_000
	value := []byte(`{"Account-ID":"acme","Queue-ID":"q","Type":"svc_cc_queue_on_call_event","history":[` +
		strings.Repeat(`{"type":"agent","ext":"1001","event":"ring","email":"ann@example.com","first_name":"Ann"},`,
			10) + `{}]}`)
	var calls [][]byte // every event changes the state of a call, three of four that of an agent

	for i := range total {
		step := []string{"entered", "offered", "answered", "hangup"}[i/50%4]
		calls = append(calls,
			fmt.Appendf(nil,
				`{"Account-ID":"acme","Queue-ID":"q","Type":"svc_cc_queue_on_call_event","CDR":{"Call-ID":"%08x-1c37-4f0e-8a43-0e7f1f5a7b1c","Event":"%s"},"Agent-ID":"%d",`+
					`"history":[`+strings.Repeat(
					`{"type":"agent","ext":"1001","event":"ring","email":"ann@example.com","first_name":"Ann"},`,
					8)+`{}]}`,
				i%50+i/200*50, step, i%50+i/200%10*50))
	}

	for _, c := range []struct {
		name   string
		work   func(testing.TB, *kafka.Cluster, *kafka.Producer) func()
		values [][]byte
	}{
		{"normalize", startNormalizer, [][]byte{value}}, {"copy", startCopy, [][]byte{value}},
		{"normalize calls", startNormalizer, calls}, {"copy calls", startCopy, calls},
	} {
		work := c.work
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				k := kafkatest.OpenEmbedded(b, partitions)
				p := produceRawRecords(b, k, partitions, total, c.values...)
				b.StartTimer()
				stop := work(b, k, p)
				awaitRecords(b, k, event.TopicEvents, partitions, total)
				b.StopTimer()
				stop()
				b.StartTimer()
			}

			b.ReportMetric(float64(total*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func startCopy(t testing.TB, c *kafka.Cluster, producer *kafka.Producer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	copyLane := func(ctx context.Context, lane *kafka.Assignment) error {
		r := c.NewReader(lane.Topic, lane.Partition, 0)
		defer r.Close()

		for {
			records, err := r.Read(ctx)
			if err != nil {
				return err
			}

			for i := range records {
				records[i].Topic = event.TopicEvents
			}

			if err := producer.Produce(ctx, records...); err != nil {
				return err
			}

			lane.Commit(records[len(records)-1].Offset + 1)
		}
	}

	var running sync.WaitGroup
	running.Go(func() {
		if err := c.RunGroup(ctx, kafka.GroupConfig{Group: "copy", Topics: []string{event.TopicRaw}},
			copyLane); err != nil {
			t.Error(err)
		}
	})

	return func() {
		cancel()
		running.Wait()
	}
}
