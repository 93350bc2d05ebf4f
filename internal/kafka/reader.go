package kafka

import (
	"context"
	"sync/atomic"
	"time"

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
	cluster       *Cluster
	topic         string // base name
	partition     int
	prefixedTopic string     // topic with prefix
	compacted     bool       // see ReaderConfig.Compacted
	topicID       TopicID    // zero: unknown
	leader        leadership // of the last request
	nextOffset    int64      // offset to read next
	epochs        epochHistory
	checkedEpoch  int32 // leader epoch for which the last record's epoch was checked
	endOffset     int64 // of the log, as of the last response
	backoff       retry.Backoff
	failing       bool // the last request failed, and that was logged
	meter         readMeter

	sub        *subscription
	idleNanos  atomic.Int64                 // Unix nanoseconds, see Idle
	laterIdle  time.Time                    // for idleNanos once the records of the last Read are processed
	waitingSub atomic.Pointer[subscription] // set while Read waits for it

	chunks        []chunk // that the last Read's records are in; the last one is being read
	pending       []byte  // batches of the last chunk that are not decoded yet
	chunkUnread   bool    // none of the batches of the last chunk has been decoded
	suspectOffset int64   // offset whose batch failed its checks once; -1: none
	decoder       wire.Decoder
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
	// maxIdleBufferBytes is the buffer size, in bytes, that an idle reader keeps.
	maxIdleBufferBytes = 64 << 10
	// maxIdleChunks is the capacity, in chunks, that an idle reader keeps.
	maxIdleChunks = 16
)

// NewReader returns a reader of a topic that is not compacted. offset must be in the
// log or at its end.
func (c *Cluster) NewReader(topic string, partition int, offset int64) *Reader {
	return c.OpenReader(ReaderConfig{Topic: topic, Partition: partition, From: AtOffset(offset)})
}

// OpenReader returns a reader. It sends nothing before the first Read.
func (c *Cluster) OpenReader(cfg ReaderConfig) *Reader {
	r := &Reader{
		cluster: c, topic: cfg.Topic, partition: cfg.Partition, prefixedTopic: c.withPrefix(cfg.Topic),
		compacted: cfg.Compacted,
		topicID:   cfg.From.TopicID, nextOffset: cfg.From.Offset, checkedEpoch: UnknownEpoch, suspectOffset: -1,
		backoff: retry.Backoff{First: 20 * time.Millisecond, Max: time.Second},
		meter:   c.metrics.newReadMeter(cfg.Topic),
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
		records, err := r.readBatches(ctx)
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
func (r *Reader) Lag() int64 { return max(r.endOffset-r.nextOffset, 0) }

// Idle returns the time of the last response without new records at which Read had
// returned every record of the log; zero if there was none. It may be called while
// Read waits.
func (r *Reader) Idle() time.Time {
	s := r.waitingSub.Load()
	if s != nil {
		idle := s.idleSince()
		// If Read has taken a chunk meanwhile, idle may be later than records that the caller does not have yet.
		if !idle.IsZero() && r.waitingSub.Load() == s {
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
	r.unsubscribe()
	r.chunks = nil // not freed for reuse: the records of the last Read may still refer to them
	r.decoder = wire.Decoder{Topic: r.topic, Partition: r.partition}
}

// readBatches decodes all batches that have arrived, up to readBytes, so that a reader that
// was busy gets in one Read what came meanwhile, however many responses brought it. If
// nothing has arrived, it waits for a chunk. It may return no records.
func (r *Reader) readBatches(ctx context.Context) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	r.decoder.Reset()
	r.freeChunks()
	// The caller has processed the last Read, and with it all chunks before the one that this time is of.
	r.setIdle(r.laterIdle)
	r.laterIdle = time.Time{}

	if len(r.pending) == 0 {
		if err := r.awaitChunk(ctx); err != nil {
			return nil, err
		}
	}

	decoded := 0
	for more := true; more; {
		n, gap := r.decodePending(readBytes - decoded)
		decoded += n
		if gap != nil {
			r.meter.add(len(r.decoder.Records), decoded)
			return r.decoder.Records, r.handleBadBatch(ctx, gap)
		}

		more = len(r.pending) == 0 && decoded < readBytes && !r.decoder.Full() && r.takeArrived()
	}

	r.meter.add(len(r.decoder.Records), decoded)
	return r.decoder.Records, nil
}

// decodePending decodes batches of pending until about limit bytes are decoded or the decoder
// is full. It returns the number of decoded bytes and, if the batch at nextOffset is not
// the next one of the log, a GapError.
func (r *Reader) decodePending(limit int) (decoded int, gap *GapError) {
	for len(r.pending) > 0 && decoded < limit && !r.decoder.Full() {
		b, err := r.decoder.Decode(r.pending, r.nextOffset)
		// The records of the batch lie behind the gap: they are dropped, and the reader stops in front of it.
		if err == nil && b.Found && !r.compacted && b.Base > r.nextOffset {
			r.decoder.Records = r.decoder.Records[:b.RecordsBefore]
			return decoded, &GapError{Kind: GapMissing, Resume: b.Base}
		}
		if err != nil {
			return decoded, &GapError{Kind: GapDamaged, Resume: max(b.Next, r.nextOffset), Reason: err.Error()}
		}

		if !b.Found { // truncated by the broker: the next response has the complete batch
			if r.chunkUnread { // brokers always send the first batch completely
				return decoded, &GapError{Kind: GapDamaged, Resume: r.nextOffset, Reason: "an incomplete first batch"}
			}
			r.pending = nil
			return decoded, nil
		}

		r.epochs.add(b.Epoch, b.Next)
		r.nextOffset, r.suspectOffset, r.chunkUnread = b.Next, -1, false
		if b.More {
			return decoded, nil
		}

		decoded += len(r.pending) - len(b.Rest)
		r.pending = b.Rest
	}

	return decoded, nil
}

// takeArrived takes the next chunk if it has arrived and continues the log where the last one
// ended. It does not wait.
func (r *Reader) takeArrived() bool {
	if r.sub == nil {
		return false
	}

	t := r.sub.takeChunk()
	if t.batches == nil { // an error stays with the subscription, for awaitChunk
		return false
	}

	r.use(&t)
	r.laterIdle = t.idleAt // the chunks before it are not returned yet
	return true
}

// setIdle sets the time of Idle, unless it is zero.
func (r *Reader) setIdle(at time.Time) {
	if !at.IsZero() {
		r.idleNanos.Store(at.UnixNano())
	}
}

// use makes a chunk that was taken the one being read.
func (r *Reader) use(t *takeResult) {
	r.endOffset = max(t.end, r.endOffset)
	r.chunks = append(r.chunks, t.chunk)
	r.pending, r.chunkUnread = t.batches, true
	r.decoder.SetAborted(t.aborted)
}

// freeChunks releases the chunks whose batches are all decoded. The caller has dropped
// their records.
func (r *Reader) freeChunks() {
	decoded := len(r.chunks)
	if len(r.pending) > 0 {
		decoded--
	}

	for i := range r.chunks[:decoded] {
		r.chunks[i].free()
	}

	left := copy(r.chunks, r.chunks[decoded:])
	clear(r.chunks[left:])
	r.chunks = r.chunks[:left]
	if left == 0 && cap(r.chunks) > maxIdleChunks {
		r.chunks = nil
	}
}

// handleBadBatch handles a batch that failed its checks. The first time it is fetched again;
// the second time it is an error, after the records before it have been returned.
func (r *Reader) handleBadBatch(ctx context.Context, gap *GapError) error {
	// The records fetched after the bad batch go too: it is fetched again from where it begins.
	r.unsubscribe()
	r.cluster.metrics.countError("fetch", "corrupt")
	if r.suspectOffset != r.nextOffset {
		r.suspectOffset = r.nextOffset
		return nil
	}
	// suspectOffset stays, so the next Read, which begins at the bad batch, returns the error.
	if len(r.decoder.Records) > 0 {
		return nil
	}

	gap.Topic, gap.Partition, gap.Offset, gap.Next = r.topic, r.partition, r.nextOffset, r.endOffset
	gap.LeaderEpoch = UnknownEpoch
	if gap.Resume <= r.nextOffset { // the damage hides the end of its batch
		_, end, err := r.cluster.Offsets(ctx, r.topic, r.partition)
		if err == nil {
			gap.Resume, err = r.readableAfter(ctx, r.nextOffset, end)
		}
		if err != nil {
			return asFault(err, "finding the end of damaged records")
		}
	}

	return r.countGap(gap)
}

// countGap counts a gap and returns its error.
func (r *Reader) countGap(gap *GapError) error {
	r.cluster.metrics.gaps.WithLabelValues(r.topic, string(gap.Kind)).Inc()
	return gap
}
