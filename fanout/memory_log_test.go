package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// memoryLog is a Log of slices: what Kafka does, without Kafka.
type memoryLog struct {
	mu         sync.Mutex
	grown      *sync.Cond
	partitions [][]kafka.Record
	first      []int64
	topicID    kafka.TopicID
	epoch      int32 // of what is written now
	damaged    map[int][2]int64
	states     []stateTopic   // cc.state
	accounts   []kafka.Record // cc.accounts
	lookups    int            // requests but reads
	reads      int
	down       bool
	missing    bool // cc.evt is deleted
	uncounted  bool // nobody learns how many partitions there are
	known      bool // the number of partitions is cached
}

func newMemoryLog(partitions int) *memoryLog {
	l := &memoryLog{partitions: make([][]kafka.Record, partitions), first: make([]int64, partitions),
		topicID: kafka.TopicID{1}, damaged: make(map[int][2]int64), states: make([]stateTopic, partitions)}
	l.grown = sync.NewCond(&l.mu)
	return l
}

var errDown = errors.New("log is down")

func (l *memoryLog) Partitions(context.Context, string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookups++
	if l.down || l.uncounted {
		return 0, errDown
	}
	return len(l.partitions), nil
}

func (l *memoryLog) KnownPartitions(ctx context.Context, topic string) (int, error) {
	l.mu.Lock()
	known, partitions := l.known, len(l.partitions)
	l.mu.Unlock()

	if known {
		return partitions, nil
	}

	partitions, err := l.Partitions(ctx, topic)
	l.mu.Lock()
	defer l.mu.Unlock()

	l.known = err == nil
	return partitions, err
}

// stateTopic is a partition of cc.state, as a normalizer writes it.
type stateTopic struct {
	fold    *state.Partition
	records []kafka.Record
}

// normalizes makes the log have a state: a normalizer has taken all partitions over.
func (l *memoryLog) normalizes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.states {
		l.writeState(p)
	}
}

// writeState writes what has changed since the last call, and the position.
func (l *memoryLog) writeState(p int) {
	s := &l.states[p]
	if s.fold == nil {
		s.fold = state.NewPartition()
	}

	add := func(r kafka.Record) {
		r.Topic, r.Partition, r.Offset = event.TopicState, p, int64(len(s.records))
		s.records = append(s.records, r)
	}

	s.fold.Commit(func(c state.Change) {
		r := kafka.Record{Key: []byte(c.Key.String())}
		if c.Value != nil {
			r.Value = c.Value.Append(nil)
		} else {
			r.Headers = []kafka.Header{{Key: state.HeaderEventID, Value: s.fold.Last().Append(nil)}}
		}

		add(r)
	})

	at := state.Position{Kind: state.PositionKind, EventID: s.fold.Last(), Offset: int64(len(l.partitions[p])),
		LeaderEpoch: kafka.UnknownEpoch, TopicID: l.topicID.String()}
	highest := int64(-1)

	for i := range l.partitions[p] {
		if source, err := event.ParsePosition(string(l.partitions[p][i].Header(event.HeaderPosition))); err == nil &&
			source.Packed() > highest {
			highest, at.SourcePosition = source.Packed(), source.String()
		}
	}

	add(kafka.Record{Key: []byte(state.PositionKey), Value: at.Append(nil)})
	l.grown.Broadcast()
}

type memoryCompactedReader struct {
	l     *memoryLog
	topic string
	p     int
	next  int64
}

// compacted are the records of cc.state or cc.accounts. The caller holds mu.
func (l *memoryLog) compacted(topic string, p int) []kafka.Record {
	if topic == event.TopicAccounts {
		return l.accounts
	}
	return l.states[p].records
}

func (r *memoryCompactedReader) Close() {}

func (r *memoryCompactedReader) Lag() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return int64(len(r.l.compacted(r.topic, r.p))) - r.next
}

func (r *memoryCompactedReader) Position() kafka.LogPosition { return kafka.AtOffset(r.next) }

func (r *memoryCompactedReader) Idle() time.Time {
	if r.Lag() > 0 {
		return time.Time{}
	}
	return time.Now()
}

func (r *memoryCompactedReader) Read(ctx context.Context) ([]kafka.Record, error) {
	return r.l.await(ctx, func() ([]kafka.Record, error) {
		have := r.l.compacted(r.topic, r.p)
		records := slices.Clone(have[r.next:min(int64(len(have)), r.next+300)])
		r.next += int64(len(records))
		return records, nil
	})
}

// place writes records of cc.accounts: accounts named for a partition, "" for a partition that
// is complete, each at its end.
func (l *memoryLog) place(partition int, accounts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, account := range accounts {
		p := event.AccountPartition{AccountID: account, Partition: partition,
			Offset: int64(len(l.partitions[partition]))}
		l.accounts = append(l.accounts,
			kafka.Record{Topic: event.TopicAccounts, Offset: int64(len(l.accounts)), Time: time.Now(),
				Key: []byte(p.Key()), Value: p.Value()})
	}
	l.grown.Broadcast()
}

// await calls read under the lock, whenever the log has grown, until it returns
// records or an error.
func (l *memoryLog) await(ctx context.Context, read func() ([]kafka.Record, error)) ([]kafka.Record, error) {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.grown.Broadcast()
	})
	defer stop()

	l.mu.Lock()
	defer l.mu.Unlock()

	for ctx.Err() == nil {
		if l.down {
			return nil, errDown
		}
		if records, err := read(); len(records) > 0 || err != nil {
			return records, err
		}

		l.grown.Wait()
	}

	return nil, ctx.Err()
}

func (l *memoryLog) TopicID(context.Context, string) (kafka.TopicID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return kafka.TopicID{}, errDown
	}
	return l.topicID, nil
}

func (l *memoryLog) EpochEnd(_ context.Context, _ string, p int, epoch int32) (kafka.EpochEnd, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lookups++
	end := kafka.EpochEnd{LeaderEpoch: kafka.UnknownEpoch, Offset: -1}
	for _, r := range l.partitions[p][l.first[p]:] {
		if r.LeaderEpoch <= epoch {
			end = kafka.EpochEnd{LeaderEpoch: r.LeaderEpoch, Offset: r.Offset + 1}
		}
	}

	return end, nil
}

func (l *memoryLog) Offsets(_ context.Context, topic string, p int) (int64, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.lookups++
	if l.down {
		return 0, 0, errDown
	}
	if l.missing {
		return 0, 0, fault.NotFound("no topic %q, or no such partition", topic)
	}
	if topic != event.TopicEvents {
		return 0, int64(len(l.compacted(topic, p))), nil
	}

	return l.first[p], int64(len(l.partitions[p])), nil
}

func (l *memoryLog) OffsetAt(_ context.Context, _ string, p int, at time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookups++
	for i := l.first[p]; i < int64(len(l.partitions[p])); i++ {
		if !l.partitions[p][i].Time.Before(at) {
			return i, nil
		}
	}
	return int64(len(l.partitions[p])), nil
}

func (l *memoryLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	from := cfg.From
	if cfg.Compacted { // cc.state or cc.accounts
		return &memoryCompactedReader{l: l, topic: cfg.Topic, p: cfg.Partition, next: from.Offset}
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	r := &memoryReader{l: l, p: cfg.Partition, next: from.Offset, epoch: from.LeaderEpoch, topicID: from.TopicID}
	if r.topicID.IsZero() {
		r.topicID = l.topicID
	}

	return r
}

type memoryReader struct {
	l     *memoryLog
	p     int
	next  int64
	epoch int32 // of the record before next

	topicID kafka.TopicID
}

func (r *memoryReader) Close() {}

func (r *memoryReader) Lag() int64 {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	return int64(len(r.l.partitions[r.p])) - r.next
}

func (r *memoryReader) Position() kafka.LogPosition {
	return kafka.LogPosition{TopicID: r.topicID, Offset: r.next, LeaderEpoch: r.epoch}
}

func (r *memoryReader) Idle() time.Time {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.down || int64(len(r.l.partitions[r.p])) > r.next {
		return time.Time{}
	}
	return time.Now()
}

func (r *memoryReader) Read(ctx context.Context) ([]kafka.Record, error) {
	return r.l.await(ctx, func() ([]kafka.Record, error) {
		have := r.l.partitions[r.p]
		if err := r.gap(have); err != nil {
			return nil, err
		}

		end := r.readable(have)
		if r.next >= end {
			return nil, nil
		}

		records := slices.Clone(have[r.next:min(end, r.next+300)])
		r.next += int64(len(records))
		r.epoch = records[len(records)-1].LeaderEpoch
		r.l.reads++

		return records, nil
	})
}

// gap returns the error of kafka.Reader for a log that does not continue at r.
func (r *memoryReader) gap(have []kafka.Record) error {
	first, next := r.l.first[r.p], int64(len(have))
	if r.topicID != r.l.topicID {
		return &kafka.GapError{Topic: event.TopicEvents, Partition: r.p, Kind: kafka.GapRecreated, Offset: r.next,
			Resume:      first,
			LeaderEpoch: kafka.UnknownEpoch, First: first, Next: next}
	}

	if r.next < first || r.next > next && r.epoch == kafka.UnknownEpoch {
		return kafka.OutOfRange(event.TopicEvents, r.p, r.next, first, next)
	}

	if r.next > first && r.epoch != kafka.UnknownEpoch && (r.next > next || have[r.next-1].LeaderEpoch != r.epoch) {
		gap := &kafka.GapError{Topic: event.TopicEvents, Partition: r.p, Kind: kafka.GapTruncated, Offset: r.next,
			Resume:      min(r.next, next),
			LeaderEpoch: kafka.UnknownEpoch, First: first, Next: next}
		for gap.Resume > first && have[gap.Resume-1].LeaderEpoch > r.epoch {
			gap.Resume--
		}

		if gap.Resume > first {
			gap.LeaderEpoch = have[gap.Resume-1].LeaderEpoch
		}

		return gap
	}

	if d, ok := r.l.damaged[r.p]; ok && r.next >= d[0] && r.next < d[1] {
		return &kafka.GapError{Topic: event.TopicEvents, Partition: r.p, Kind: kafka.GapDamaged, Offset: r.next,
			Resume:      d[1],
			LeaderEpoch: kafka.UnknownEpoch, Reason: "test"}
	}

	return nil
}

// readable is the offset up to which one read may go.
func (r *memoryReader) readable(have []kafka.Record) int64 {
	if d, ok := r.l.damaged[r.p]; ok && r.next < d[0] {
		return d[0]
	}
	return int64(len(have))
}

// damage makes the records of a partition from one offset to before another
// unreadable.
func (l *memoryLog) damage(partition int, from, to int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged[partition] = [2]int64{from, to}
}

// cut drops the records of a partition from an offset on, as an election of a
// leader that never had them does.
func (l *memoryLog) cut(partition int, from int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partitions[partition] = l.partitions[partition][:from:from]
	l.epoch++
	l.grown.Broadcast()
}

// recreate deletes the topic and creates it again.
func (l *memoryLog) recreate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.partitions)
	clear(l.first)
	l.topicID[0]++
	l.epoch = 0
	l.grown.Broadcast()
}

// addPartition makes the topic larger.
func (l *memoryLog) addPartition() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partitions, l.first, l.states = append(l.partitions, nil), append(l.first, 0), append(l.states, stateTopic{})
}

// put appends messages of an account, one for each source offset given, as a
// normalizer would: a source seen before gives the same id again.
func (l *memoryLog) put(partition int, account string, typ event.Type, sources ...int64) []event.ID {
	return l.putAt(partition, account, typ, time.UnixMilli(1_795_000_000_000), time.Unix(1, 0), sources...)
}

// putAt is put for sources that came in at that time (a millisecond apart) and
// were normalized at made.
func (l *memoryLog) putAt(partition int, account string, typ event.Type, came, made time.Time,
	sources ...int64) []event.ID {
	return l.putFacts(partition, account, typ, event.Facts{}, came, made, sources...)
}

// putFacts is putAt for messages with facts; without a name they have none.
func (l *memoryLog) putFacts(partition int, account string, typ event.Type, facts event.Facts, came, made time.Time,
	sources ...int64) []event.ID {
	l.mu.Lock()
	defer l.mu.Unlock()

	var ids []event.ID
	for _, source := range sources {
		position := unpacked(partition, source)
		id := event.NextID(0, came.UnixMilli()+position.Offset+1000*int64(position.Generation), partition)
		m := event.Message{ID: id, Type: typ, AccountID: account, Timestamp: 1_795_000_000,
			Data:     json.RawMessage(fmt.Sprintf(`{"n":%d}`, source)),
			Metadata: event.Metadata{Source: "test", OriginalFormat: "svc.cc", ProcessedAt: made.Unix()}}
		l.partitions[partition] = append(l.partitions[partition], kafka.Record{
			Topic: event.TopicEvents, Partition: partition, Offset: int64(len(l.partitions[partition])),
			LeaderEpoch: l.epoch, Time: time.UnixMilli(id.Milli()), Value: m.Append(nil),
			Headers: []kafka.Header{
				{Key: event.HeaderType, Value: []byte(typ)},
				{Key: event.HeaderAccount, Value: []byte(account)},
				{Key: event.HeaderOriginalFormat, Value: []byte("svc.cc")},
				{Key: event.HeaderPosition, Value: []byte(position.String())},
			},
		})
		added := &l.partitions[partition][len(l.partitions[partition])-1]

		for _, h := range []struct{ key, value string }{
			{event.HeaderName, string(facts.Name)}, {event.HeaderAgent, facts.AgentID},
			{event.HeaderQueue, facts.QueueID}, {event.HeaderCall, facts.CallID},
		} {
			if h.value != "" {
				added.Headers = append(added.Headers, kafka.Header{Key: h.key, Value: []byte(h.value)})
			}
		}

		ids = append(ids, id)
	}

	l.grown.Broadcast()
	return ids
}

// unpacked is the position whose packed form is source.
func unpacked(partition int, source int64) event.Position {
	return event.Position{Partition: partition, Offset: source & event.MaxOffset,
		Generation: int(source / (event.MaxOffset + 1))}
}

func (l *memoryLog) trim(partition int, first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first[partition] = first
}

// putEverySecond appends one message a second to every partition, from one
// number to before another, and returns their ids in order.
func (l *memoryLog) putEverySecond(began time.Time, from, to int) (ids []event.ID) {
	for n := from; n < to; n++ {
		at := began.Add(time.Duration(n) * time.Second)
		for p := range l.partitions {
			ids = append(ids, l.putAt(p, "root", event.QueueCall, at, at, int64(n))...)
		}
	}
	slices.Sort(ids)
	return ids
}
