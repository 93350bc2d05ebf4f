package normalizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// fakeKafka is topics in memory, and a consumer group whose members all get
// every partition: the worst overlap there can be.
type fakeKafka struct {
	mu         sync.Mutex
	logs       map[string][][]kafka.Record
	first      map[string][]int64
	committed  map[string]int64
	epochs     map[string]int32 // of a topic's leaders; appended records have it
	ids        map[string]kafka.TopicID
	partitions int
	changed    chan struct{}

	readMost  int                                                 // records of one Read
	readWhole bool                                                // a Read returns all records, up to readMost
	onProduce func(records []kafka.Record) (write int, err error) // nil: all are written
	keep      func(old, next int64) int64                         // what becomes of a commit
	damage    *kafka.GapError
}

func newFakeKafka(partitions int) *fakeKafka {
	k := &fakeKafka{
		logs: make(map[string][][]kafka.Record), first: make(map[string][]int64),
		committed: make(map[string]int64), epochs: make(map[string]int32), ids: make(map[string]kafka.TopicID),
		partitions: partitions, changed: make(chan struct{}), readMost: 1000,
		keep: func(_, next int64) int64 { return next },
	}
	for i, topic := range []string{event.TopicRaw, event.TopicCDRRaw, event.TopicEvents, event.TopicCDR,
		event.TopicDead, event.TopicState, event.TopicAccounts} {
		k.ids[topic] = kafka.TopicID{byte(i + 1)}
		k.logs[topic] = make([][]kafka.Record, partitions)
		k.first[topic] = make([]int64, partitions)
	}
	return k
}

func (k *fakeKafka) append(records ...kafka.Record) (next int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range records {
		next = k.put(r) + 1
	}
	close(k.changed)
	k.changed = make(chan struct{})
	return next
}

func (k *fakeKafka) put(r kafka.Record) (offset int64) {
	c := *r.Clone()
	if c.Partition == kafka.AnyPartition {
		c.Partition = 0
	}
	log := k.logs[c.Topic]
	c.LeaderEpoch = k.epochs[c.Topic]
	c.Offset = k.first[c.Topic][c.Partition] + int64(len(log[c.Partition]))
	log[c.Partition] = append(log[c.Partition], c)
	return c.Offset
}

// truncate cuts a partition as a leader does that lacks its end, and returns what it had.
func (k *fakeKafka) truncate(topic string, partition int, next int64) (before []kafka.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before = k.logs[topic][partition]
	next = min(next, k.first[topic][partition]+int64(len(before)))
	k.logs[topic][partition] = slices.Clone(before[:next-k.first[topic][partition]])
	k.epochs[topic]++
	return before
}

// recreate deletes a topic and creates it again, and returns what its first partition had.
func (k *fakeKafka) recreate(topic string) (before []kafka.Record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before = k.logs[topic][0]
	k.logs[topic], k.first[topic] = make([][]kafka.Record, k.partitions), make([]int64, k.partitions)
	k.epochs[topic] = 0
	id := k.ids[topic]
	id[1]++
	k.ids[topic] = id
	return before
}

// all returns a copy of what a partition holds.
func (k *fakeKafka) all(topic string, partition int) []kafka.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]kafka.Record(nil), k.logs[topic][partition]...)
}

func (k *fakeKafka) Produce(ctx context.Context, records ...kafka.Record) error {
	_, err := k.ProduceWithOffsets(ctx, records...)
	return err
}

// ProduceWithOffsets writes the records as one batch.
func (k *fakeKafka) ProduceWithOffsets(ctx context.Context, records ...kafka.Record) (kafka.Appended, error) {
	write, err := len(records), error(nil)
	if k.onProduce != nil {
		write, err = k.onProduce(records)
	}
	at := kafka.Appended{First: -1, Next: -1}
	if write > 0 {
		at.Next = k.append(records[:write]...)
		at.First = at.Next - int64(write)
	}
	if ctx.Err() != nil {
		return at, fault.Unavailable(ctx.Err(), 0, "gave up")
	}
	return at, err
}

func (k *fakeKafka) ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
	each func(*kafka.Record)) (int64, error) {
	reset()
	_, end, err := k.Offsets(ctx, topic, partition)
	if err != nil {
		return 0, err
	}
	return end, k.Scan(ctx, topic, partition, from, end, each)
}

func (k *fakeKafka) Work(ctx context.Context, _ string, topics []string,
	work func(context.Context, Assignment) error) error {
	var group sync.WaitGroup
	for _, topic := range topics {
		for p := range k.partitions {
			group.Go(func() {
				for ctx.Err() == nil {
					progress := &fakeProgress{k: k, key: fmt.Sprint(topic, p)}
					if err := work(ctx, Assignment{Topic: topic, Partition: p, Progress: progress}); ctx.Err() == nil &&
						err != nil {
						time.Sleep(time.Second)
					}
				}
			})
		}
	}
	group.Wait()
	return nil
}

type fakeProgress struct {
	k   *fakeKafka
	key string
}

func (p *fakeProgress) Committed() (int64, bool) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	next, ok := p.k.committed[p.key]
	return next, ok
}

func (p *fakeProgress) Commit(next int64) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	p.k.committed[p.key] = p.k.keep(p.k.committed[p.key], next)
}

func (p *fakeProgress) Rewind(next int64) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	p.k.committed[p.key] = next
}

func (k *fakeKafka) TopicID(_ context.Context, topic string) (kafka.TopicID, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ids[topic], nil
}

func (k *fakeKafka) CheckPosition(_ context.Context, topic string, partition int, at kafka.LogPosition) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := kafkatest.Partition{Topic: topic, TopicID: k.ids[topic], Number: partition, First: k.first[topic][partition],
		Records: k.logs[topic][partition]}
	return p.CheckPosition(at)
}

func (k *fakeKafka) Offsets(_ context.Context, topic string, partition int) (first, next int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first = k.first[topic][partition]
	return first, first + int64(len(k.logs[topic][partition])), nil
}

func (k *fakeKafka) Scan(_ context.Context, topic string, partition int, from, to int64,
	each func(*kafka.Record)) error {
	for _, r := range k.all(topic, partition) {
		if r.Offset >= from && r.Offset < to {
			each(&r)
		}
	}
	return nil
}

func (k *fakeKafka) Read(topic string, partition int, from kafka.LogPosition) Reader {
	return &fakeReader{k, topic, partition, from.Offset}
}

type fakeReader struct {
	k         *fakeKafka
	topic     string
	partition int
	next      int64
}

func (r *fakeReader) Read(ctx context.Context) ([]kafka.Record, error) {
	for {
		r.k.mu.Lock()
		log, first, changed := r.k.logs[r.topic][r.partition], r.k.first[r.topic][r.partition], r.k.changed
		if c := r.k.damage; c != nil && c.Offset == r.next {
			r.k.mu.Unlock()
			return nil, c
		}
		if at := r.next - first; at < 0 || at > int64(len(log)) {
			r.k.mu.Unlock()
			return nil, kafka.OutOfRange(r.topic, r.partition, r.next, first, first+int64(len(log)))
		}
		rest := log[r.next-first:]
		if len(rest) > 0 {
			n := min(len(rest), 1+rand.IntN(r.k.readMost))
			if r.k.readWhole {
				n = min(len(rest), r.k.readMost)
			}
			out := make([]kafka.Record, n)
			for i := range out {
				out[i] = *rest[i].Clone()
			}
			r.next += int64(n)
			r.k.mu.Unlock()
			return out, nil
		}
		r.k.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *fakeReader) Close() {}

// accountsFunc is Accounts of one function.
type accountsFunc func(id string) (bool, error)

func (f accountsFunc) Exists(_ context.Context, id string) (bool, error) { return f(id) }

var errAway = fault.Unavailable(errors.New("connection refused"), time.Second, "away")

func newTestNormalizer(t testing.TB, k *fakeKafka, accounts Accounts, topics ...string) *Normalizer {
	t.Helper()
	n, err := New(Config{Topics: topics}, Deps{Log: k, Producer: k, Accounts: accounts},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// start runs n until the returned function is called.
func start(n *Normalizer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = n.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func rawEvent(partition int, at time.Time, account string) kafka.Record {
	return kafka.Record{
		Topic: event.TopicRaw, Partition: partition, Time: at, Key: []byte(account),
		Value:   []byte(`{"Account-ID":"` + account + `","Type":"svc_cc_queue_on_call_event"}`),
		Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("svc.cc")}},
	}
}
