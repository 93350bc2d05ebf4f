package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/kafka/wire"
	"trunkline/internal/retry"
)

// Reader reads one partition in order, starting at an offset. It checks the log that
// it reads, reports every gap, and continues automatically after a leader change or
// while brokers are unavailable. It is not safe for concurrent use.
//
// The first Read adds the partition to the requests that the process sends to the
// partition's leader, see fetcher; Close removes it. Until then up to 2 MiB of
// records are prefetched.
type Reader struct {
	cluster    *Cluster
	topic      string // base name
	partition  int
	name       string // topic with prefix
	compacted  bool
	topicID    TopicID    // zero: unknown
	leader     leadership // of the last request
	nextOffset int64      // offset to read next
	epochs     epochHistory
	checked    int32 // leader epoch for which the last record's epoch was checked
	end        int64 // of the log, as of the last response
	wait       retry.Backoff
	failing    bool
	meter      readMeter

	sub       *subscription
	idleNanos atomic.Int64                 // Unix nanoseconds, see Idle
	waiting   atomic.Pointer[subscription] // set while Read waits for it

	held      chunk  // the chunk being read
	pending   []byte // batches of held that are not decoded yet
	untouched bool   // none of the batches of held has been decoded
	suspected int64  // offset whose batch failed its checks once; -1: none
	decoder   wire.Decoder
}

// ReaderConfig configures a Reader.
type ReaderConfig struct {
	Topic     string // base name
	Partition int

	// From is the first offset to read. If its topic id or leader epoch is known, the
	// first Read checks that the log continues there.
	From LogPosition

	// Compacted is set for compacted topics, in which offsets may be missing. In other
	// topics a missing offset is a GapError.
	Compacted bool
}

const (
	// readBytes limits one Read, rounded up to whole batches; wire.Decoder limits the
	// number of records.
	readBytes = 1 << 20
	// keptMemory is the buffer size, in bytes, that an idle reader keeps.
	keptMemory = 64 << 10
)

// NewReader returns a reader of a topic that is not compacted. offset must be in the
// log or at its end.
func (c *Cluster) NewReader(topic string, partition int, offset int64) *Reader {
	return c.OpenReader(ReaderConfig{Topic: topic, Partition: partition, From: LogPosition{Offset: offset, LeaderEpoch: UnknownEpoch}})
}

// OpenReader returns a reader. It sends nothing before the first Read.
func (c *Cluster) OpenReader(cfg ReaderConfig) *Reader {
	r := &Reader{
		cluster: c, topic: cfg.Topic, partition: cfg.Partition, name: c.topic(cfg.Topic), compacted: cfg.Compacted,
		topicID: cfg.From.TopicID, nextOffset: cfg.From.Offset, checked: UnknownEpoch, suspected: -1,
		wait:    retry.Backoff{First: 20 * time.Millisecond, Max: time.Second},
		meter:   c.metrics.reading(cfg.Topic),
		decoder: wire.Decoder{Topic: cfg.Topic, Partition: cfg.Partition},
	}
	r.epochs.add(cfg.From.LeaderEpoch, cfg.From.Offset)
	return r
}

// Read waits for at least one record and returns the available records in order. They
// and all memory that they refer to, except header names, are valid until the next
// Read. It returns *GapError, an error of the broker, or the error of ctx; Read may
// then be called again.
func (r *Reader) Read(ctx context.Context) ([]Record, error) {
	for {
		records, err := r.step(ctx)
		if len(records) > 0 || err != nil {
			return records, err
		}
	}
}

// Position returns the position of the next Read. The topic's id is known after the
// first Read.
func (r *Reader) Position() LogPosition {
	return LogPosition{TopicID: r.topicID, Offset: r.nextOffset, LeaderEpoch: r.epochs.last()}
}

// Next returns the offset of the next Read.
func (r *Reader) Next() int64 { return r.nextOffset }

// Lag returns the number of offsets between the reader and the end of the log, as of
// the last fetch.
func (r *Reader) Lag() int64 { return max(r.end-r.nextOffset, 0) }

// Idle returns the time of the last response without new records at which Read had
// returned every record of the log; zero if there was none. It may be called while
// Read waits.
func (r *Reader) Idle() time.Time {
	if s := r.waiting.Load(); s != nil {
		if idle := s.idleSince(); !idle.IsZero() && r.waiting.Load() == s {
			return idle
		}
	}
	ns := r.idleNanos.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Close ends fetching and frees the reader's memory.
func (r *Reader) Close() {
	r.detach()
	r.held = chunk{}
	r.decoder = wire.Decoder{Topic: r.topic, Partition: r.partition}
}

// step processes some batches of the current chunk, or takes another chunk. It may
// return no records.
func (r *Reader) step(ctx context.Context) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.decoder.Reset()
	if len(r.pending) == 0 {
		if err := r.fetch(ctx); err != nil {
			return nil, err
		}
	}
	fetched := len(r.pending)
	for len(r.pending) > 0 && fetched-len(r.pending) < readBytes && !r.decoder.Full() {
		b, err := r.decoder.Decode(r.pending, r.nextOffset)
		if err == nil && b.Found && !r.compacted && b.Base > r.nextOffset {
			r.decoder.Records = r.decoder.Records[:b.Before]
			return r.decoder.Records, r.suspect(ctx, &GapError{Kind: GapMissing, Resume: b.Base})
		}
		if err != nil {
			return r.decoder.Records, r.suspect(ctx, &GapError{Kind: GapDamaged, Resume: max(b.Next, r.nextOffset), Reason: err.Error()})
		}
		if !b.Found { // truncated by the broker: the next response has the complete batch
			if r.untouched { // brokers always send the first batch completely
				return nil, r.suspect(ctx, &GapError{Kind: GapDamaged, Resume: r.nextOffset, Reason: "a batch that does not come whole"})
			}
			fetched -= len(r.pending)
			r.pending = nil
			break
		}
		r.epochs.add(b.Epoch, b.Next)
		r.nextOffset, r.suspected, r.untouched = b.Next, -1, false
		if b.More {
			break
		}
		r.pending = b.Rest
	}
	r.meter.add(len(r.decoder.Records), fetched-len(r.pending))
	return r.decoder.Records, nil
}

// suspect handles a batch that failed its checks. The first time it is fetched again;
// the second time it is an error, after the records before it have been returned.
func (r *Reader) suspect(ctx context.Context, gap *GapError) error {
	r.detach()
	r.cluster.metrics.failed("fetch", "corrupt")
	if r.suspected != r.nextOffset {
		r.suspected = r.nextOffset
		return nil
	}
	if len(r.decoder.Records) > 0 {
		return nil
	}
	gap.Topic, gap.Partition, gap.Offset, gap.Next = r.topic, r.partition, r.nextOffset, r.end
	gap.LeaderEpoch = UnknownEpoch
	if gap.Resume <= r.nextOffset { // the damage hides the end of its batch
		_, end, err := r.cluster.Offsets(ctx, r.topic, r.partition)
		if err == nil {
			gap.Resume, err = r.readableAfter(ctx, r.nextOffset, end)
		}
		if err != nil {
			return away(err, "looking for the end of damage")
		}
	}
	return r.gap(gap)
}

// gap counts a gap and returns its error.
func (r *Reader) gap(gap *GapError) error {
	r.cluster.metrics.gaps.WithLabelValues(r.topic, string(gap.Kind)).Inc()
	return gap
}

// fetch waits for the next chunk, however long the leader is unavailable.
func (r *Reader) fetch(ctx context.Context) error {
	r.held.free()
	for {
		err := r.attach(ctx)
		if err == nil {
			var ok bool
			if ok, err = r.take(ctx); ok {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.detach()
		}
		if errors.Is(err, kafkago.InvalidMessage) { // the broker detected the damage
			if err = r.suspect(ctx, &GapError{Kind: GapDamaged, Resume: r.nextOffset, Reason: err.Error()}); err == nil {
				continue
			}
			return err
		}
		if errors.Is(err, kafkago.OffsetOutOfRange) {
			if err = r.outOfRange(ctx); err == nil {
				err = errLeaderBehind
			}
		}
		if gap, ok := errors.AsType[*GapError](err); ok {
			return r.gap(gap)
		}
		if err != nil {
			if err := r.failed(ctx, err); err != nil {
				return err
			}
		}
	}
}

// attach adds the partition to the requests to its leader. It returns *GapError if the
// log is no longer the one that was read.
func (r *Reader) attach(ctx context.Context) error {
	if r.sub != nil {
		return nil
	}
	t, err := r.cluster.leaders.topic(ctx, r.name)
	if err != nil {
		return err
	}
	leader, err := r.cluster.leaders.leaderOf(t, r.partition)
	if err != nil {
		return err
	}
	r.leader = leader
	if r.topicID.IsZero() {
		r.topicID = t.id
	}
	if r.topicID != t.id {
		return r.cluster.gap(ctx, r.topic, r.partition, r.nextOffset, GapRecreated)
	}
	if r.epochs.last() != UnknownEpoch && r.checked != leader.epoch {
		if err := r.checkEpoch(ctx); err != nil {
			return err
		}
		r.checked = leader.epoch
	}
	r.sub = r.cluster.fetchers.subscribe(leader.address, fetchPartition{
		fetchKey: fetchKey{r.topicID, int32(r.partition)}, offset: r.nextOffset,
		leaderEpoch: leader.epoch, lastEpoch: r.epochs.last(),
	})
	return nil
}

// detach drops prefetched records.
func (r *Reader) detach() {
	if r.sub != nil {
		r.sub.unsubscribe()
		r.sub = nil
	}
	r.pending = nil // held is kept: returned records may refer to it
	r.decoder.Abandon()
}

// take waits for a chunk; false without an error means that there is none yet.
func (r *Reader) take(ctx context.Context) (bool, error) {
	t := r.sub.take()
	r.end = max(t.end, r.end)
	if t.diverging != nil {
		return false, r.diverged(ctx, *t.diverging)
	}
	if t.err != nil {
		return false, t.err
	}
	if t.confirmed {
		r.recovered()
	}
	if t.batches != nil {
		if !t.idle.IsZero() {
			r.idleNanos.Store(t.idle.UnixNano())
		}
		r.held, r.pending, r.untouched = t.chunk, t.batches, true
		r.decoder.SetAborted(t.aborted)
		return true, nil
	}
	r.decoder.Shrink(keptMemory)
	r.waiting.Store(r.sub)
	defer r.waiting.Store(nil)
	select {
	case <-r.sub.wake:
	case <-ctx.Done():
		if idle := r.sub.idleSince(); !idle.IsZero() { // for callers of Idle between reads
			r.idleNanos.Store(idle.UnixNano())
		}
	}
	return false, nil
}

// outOfRange returns the error of an offset outside the log. It returns nil if the
// offset is in the log after all: a new leader may not have had it yet.
func (r *Reader) outOfRange(ctx context.Context) error {
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}
	switch {
	case r.nextOffset < first:
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	case r.nextOffset > next:
		if err := r.checkEpoch(ctx); err != nil {
			return err
		}
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	}
	return nil
}

// checkEpoch returns *GapError if the record before nextOffset is no longer in the
// log.
func (r *Reader) checkEpoch(ctx context.Context) error {
	last := r.epochs.last()
	if last == UnknownEpoch {
		return nil
	}
	end, err := r.cluster.EpochEnd(ctx, r.topic, r.partition, last)
	if err != nil || end.LeaderEpoch == last && end.Offset >= r.nextOffset {
		return err
	}
	return r.diverged(ctx, end)
}

// diverged returns the error of a log in which the newest epoch, up to that of the
// last record read, differs or ends before the reader.
func (r *Reader) diverged(ctx context.Context, end EpochEnd) error {
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}
	if r.nextOffset <= first { // no record before it is in the log
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	}
	end.Offset = min(end.Offset, r.epochs.endOf(end.LeaderEpoch))
	return truncated(r.topic, r.partition, r.nextOffset, end, first, next)
}

// errLeaderBehind is the error of a leader that does not have an offset of the log
// yet.
var errLeaderBehind = fmt.Errorf("leader does not know the offset yet: %w", kafkago.UnknownLeaderEpoch)

// failed counts an error and waits before the retry; it returns an error if a retry is
// useless.
func (r *Reader) failed(ctx context.Context, err error) error {
	if staleLeader(err) {
		r.cluster.leaders.forget(r.name, r.partition, r.leader)
	}
	r.cluster.metrics.failed("fetch", reason(err))
	if !retriable(err) {
		return away(err, "reading from Kafka")
	}
	if !r.failing {
		r.failing = true
		r.cluster.log.Warn("reading from Kafka failed, retrying", "topic", r.topic, "partition", r.partition, "offset", r.nextOffset, "error", err)
	}
	if !r.wait.Wait(ctx) {
		return ctx.Err()
	}
	return nil
}

func (r *Reader) recovered() {
	r.wait.Reset()
	if r.failing {
		r.failing = false
		r.cluster.log.Info("reading from Kafka recovered", "topic", r.topic, "partition", r.partition, "offset", r.nextOffset)
	}
}

// epochHistory stores the ends of the last few leader epochs that were read, to find
// the offset at which a log diverged.
type epochHistory struct{ ends []EpochEnd }

const rememberedEpochs = 8

// add records that records of an epoch were read up to next.
func (h *epochHistory) add(epoch int32, next int64) {
	if epoch < 0 {
		return
	}
	if n := len(h.ends); n > 0 && h.ends[n-1].LeaderEpoch == epoch {
		h.ends[n-1].Offset = next
		return
	}
	if len(h.ends) == rememberedEpochs {
		h.ends = append(h.ends[:0], h.ends[1:]...)
	}
	h.ends = append(h.ends, EpochEnd{epoch, next})
}

// last returns the epoch of the last record, or UnknownEpoch.
func (h *epochHistory) last() int32 {
	if len(h.ends) == 0 {
		return UnknownEpoch
	}
	return h.ends[len(h.ends)-1].LeaderEpoch
}

// endOf returns the offset after the last record read whose epoch is at most epoch; if
// none is stored, the largest possible offset.
func (h *epochHistory) endOf(epoch int32) int64 {
	end := int64(math.MaxInt64)
	for _, e := range h.ends {
		if e.LeaderEpoch <= epoch {
			end = e.Offset
		}
	}
	return end
}
