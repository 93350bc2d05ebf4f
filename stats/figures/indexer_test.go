package figures

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// onKafkas runs test on the embedded broker and on Apache Kafka, with topics of its
// own.
func onKafkas(t *testing.T, test func(t *testing.T, c *kafka.Cluster)) {
	t.Run("embedded", func(t *testing.T) { test(t, kafkatest.OpenEmbedded(t, 1)) })
	t.Run("apache", func(t *testing.T) {
		settings := kafka.DefaultSettings(testservice.Kafka(t)...)
		settings.TopicPrefix = testservice.Prefix(t)
		test(t, kafkatest.Open(t, kafka.Config{Settings: settings}, 1))
	})
}

// produce writes records of cc.stats in batches.
func produce(t testing.TB, c *kafka.Cluster, all []kafka.Record) {
	t.Helper()
	p := c.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = p.Close(context.Background()) }()

	for len(all) > 0 {
		n := min(len(all), 40)
		if err := p.Produce(t.Context(), all[:n]...); err != nil {
			t.Fatal(err)
		}
		all = all[n:]
	}
}

// await waits until the rows of an account are those of the records.
func (s *Store) await(t testing.TB, account string, all []kafka.Record) {
	t.Helper()
	want := lastRows(all)
	deadline := time.Now().Add(3 * time.Minute)

	for {
		stored := map[string]bool{}
		for _, row := range append(s.listRows(t, wholeDay(Queues, account)),
			s.listRows(t, wholeDay(Agents, account))...) {
			stored[row] = true
		}

		missing := 0
		for _, row := range want {
			if !stored[row] {
				missing++
			}
		}

		if missing == 0 {
			s.same(t, account, want)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d rows are missing", missing, len(want))
		}

		time.Sleep(20 * time.Millisecond)
	}
}

func TestAnIndexerStoresWhatComes(t *testing.T) {
	onKafkas(t, func(t *testing.T, c *kafka.Cluster) {
		s := openStore(t, testdb.SQLite(t))
		all := records(0, 30, workday("acme", 0, 300, 5*time.Hour))
		produce(t, c, all[:100])
		produce(t, c, []kafka.Record{
			{Topic: event.TopicStats, Key: []byte(state.PositionKey), Value: []byte(`{}`)},
			{Topic: event.TopicStats, Key: all[0].Key}, // a tombstone: the row stays
			{Topic: event.TopicStats, Key: []byte("acme|queue|q|900"), Value: []byte(`{"account_id":"acme"}`),
				Headers: all[0].Headers},
		})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		s.put(t, quarterOf("queue-1", autumn, 1, 7))

		zones := map[string]*time.Location{"acme": berlin(t)}
		running.Go(func() {
			indexer := NewIndexer(s, kafka.NewLog(c), func() map[string]*time.Location { return zones })
			if err := indexer.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		defer running.Wait()
		defer cancel()

		s.await(t, "acme", all[:100])
		produce(t, c, all[100:])
		s.await(t, "acme", all)

		for deadline := time.Now().Add(3 * time.Minute); s.count(t, dayTable) == 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the day in the past has no sums")
			}
		}
	})
}

// Two indexers of one partition, each stopped at any moment and restarted, store every
// row once.
func TestIndexersThatOverlapStoreTheSameRows(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		topics := kafkatest.NewLog(1)
		all := records(0, 5, workday("acme", 0, 400, 8*time.Hour))
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup

		index := func(ctx context.Context) {
			if err := NewIndexer(s, topics, noZones).Run(ctx); err != nil {
				t.Error(err)
			}
		}

		for n := range 2 {
			running.Go(func() {
				for ctx.Err() == nil {
					some, stop := context.WithTimeout(ctx, time.Duration(40+30*n)*time.Millisecond)
					index(some)
					stop()
				}
			})
		}

		running.Go(func() { index(ctx) })
		defer running.Wait()
		defer cancel()

		for part := range slices.Chunk(all, 300) {
			topics.Append(part...)
		}

		s.await(t, "acme", all)
	})
}

// noZones are the time zones of no account.
func noZones() map[string]*time.Location { return nil }
