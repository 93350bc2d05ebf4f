package normalizer_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// The normalizer against a loop that copies the same records from topic to
// topic through the same Kafka layer, one broker each, in one run.
func BenchmarkPipeline(b *testing.B) {
	const partitions, total = 4, 60_000
	value := []byte(`{"Account-ID":"acme","Queue-ID":"q","Type":"svc_cc_queue_on_call_event","history":[` +
		strings.Repeat(`{"type":"agent","ext":"1001","event":"ring","email":"ann@example.com","first_name":"Ann"},`, 10) + `{}]}`)
	for name, work := range map[string]func(testing.TB, *kafka.Cluster, *kafka.Producer) func(){
		"normalize": startNormalizer, "copy": startCopy,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				c := openKafka(b, partitions)
				p := fill(b, c, partitions, total, value)
				b.StartTimer()
				stop := work(b, c, p)
				reached(b, c, event.TopicEvents, partitions, total)
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
		if err := c.RunGroup(ctx, kafka.GroupConfig{Group: "copy", Topics: []string{event.TopicRaw}}, copyLane); err != nil {
			t.Error(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}
