package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Reader reads one partition in order, from an offset on. It checks what it
// reads, skips nothing without saying so, and goes on by itself when leaders
// move or brokers are away. It has no goroutine and is not for concurrent use.
type Reader struct {
	cluster *Cluster
	name    string // topic with prefix
	next    int64  // offset to read next
	end     int64  // of the log, as of the last fetch
	wait    backoff
	failing bool
	meter   readMeter
	idle    atomic.Int64 // Unix nanoseconds, see Idle

	memory    []byte // the last response's
	pending   []byte // its batches that are not decoded yet
	untouched bool   // none of its batches has been decoded
	suspected int64  // offset that failed its checks once; -1: none
	decoder
}

// What one Read gives at most, whole batches: enough to make the work after it
// cheap, little enough to stay in the processor's cache.
const (
	readBytes   = 1 << 20
	readRecords = 4096
)

// keptMemory is what a reader with nothing to read holds on to.
const keptMemory = 64 << 10

// NewReader reads from offset, which must be in the log or at its end.
func (c *Cluster) NewReader(topic string, partition int, offset int64) *Reader {
	return &Reader{
		cluster: c, name: c.topic(topic), next: offset, suspected: -1,
		wait:    backoff{first: 20 * time.Millisecond, most: time.Second},
		meter:   c.metrics.reading(topic),
		decoder: decoder{topic: topic, partition: partition},
	}
}

// Read waits for at least one record and gives what has come, in order. The
// records and all they point to, header names apart, are valid until the next
// Read. Besides ctx's end it fails with *GapError or a refusal of the broker;
// the same Read may then be tried again.
func (r *Reader) Read(ctx context.Context) ([]Record, error) {
	for {
		records, err := r.step(ctx)
		if len(records) > 0 || err != nil {
			return records, err
		}
	}
}

// Next is the offset the next Read starts from.
func (r *Reader) Next() int64 { return r.next }

// Lag is how many offsets lie between the reader and the end of its log, as of
// its last fetch.
func (r *Reader) Lag() int64 { return max(r.end-r.next, 0) }

// Idle is when a fetch last found nothing new: everything that was in the log
// then had been handed out before. Zero: never. It may be asked while Read
// waits.
func (r *Reader) Idle() time.Time {
	ns := r.idle.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Close frees the reader's memory.
func (r *Reader) Close() {
	r.memory, r.pending, r.decoder = nil, nil, decoder{topic: r.topic, partition: r.partition}
}

// step makes one step ahead: some batches of the response at hand, or one more
// fetch. It may give no records.
func (r *Reader) step(ctx context.Context) ([]Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.reset()
	if len(r.pending) == 0 {
		if err := r.fetch(ctx); err != nil {
			return nil, err
		}
	}
	fetched := len(r.pending)
	for len(r.pending) > 0 && fetched-len(r.pending) < readBytes && len(r.records) < readRecords {
		rest, next, err := r.batch(r.pending, r.next)
		if err != nil {
			return r.records, r.damaged(err, next)
		}
		if rest == nil { // cut by the broker: the next fetch has it whole
			if r.untouched { // but the first is always sent whole
				return nil, r.damaged(corrupt("a batch that does not come whole"), -1)
			}
			fetched -= len(r.pending)
			r.pending = nil
			break
		}
		r.pending, r.next, r.suspected, r.untouched = rest, next, -1, false
	}
	r.meter.add(len(r.records), fetched-len(r.pending))
	return r.records, nil
}

// damaged decides what a batch that failed its checks means. The first time it
// is fetched again; the second time it is an error, unless records before it
// are still to be handed out.
func (r *Reader) damaged(err error, next int64) error {
	r.pending = nil
	r.cluster.metrics.failed("fetch", "corrupt")
	if r.suspected != r.next {
		r.suspected = r.next
		return nil
	}
	if len(r.records) > 0 {
		return nil
	}
	return &GapError{Topic: r.topic, Partition: r.partition, Kind: GapDamaged, Offset: r.next, Resume: max(next, r.next), Reason: err.Error()}
}

// fetch gets a response with or without batches, however long the leader is
// away.
func (r *Reader) fetch(ctx context.Context) error {
	for {
		f, err := r.cluster.fetch(ctx, r.name, r.partition, r.next, r.memory)
		if err == nil {
			r.memory = f.allResponse
			err = f.err
		} else {
			r.memory = nil // a connection may still be filling it
		}
		if err == nil {
			r.pending, r.untouched, r.end = f.batches, true, f.end
			if len(f.batches) == 0 && f.end <= r.next {
				r.idle.Store(time.Now().UnixNano())
			}
			if len(f.batches) == 0 && cap(r.memory)+cap(r.unpacked) > keptMemory {
				r.memory, r.unpacked = nil, nil
			}
			r.aborts.reset(f.aborted)
			r.recovered()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, kafkago.OffsetOutOfRange) {
			if err = r.outOfRange(ctx); err != nil {
				return err
			}
		}
		if err := r.failed(ctx, err); err != nil {
			return err
		}
	}
}

// outOfRange says what is in the log instead. It answers nil when the offset
// is there after all: a leader that has just taken over may not know yet.
func (r *Reader) outOfRange(ctx context.Context) error {
	r.cluster.metrics.failed("fetch", "offset")
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return fmt.Errorf("reading %s/%d: %w", r.topic, r.partition, err)
	}
	if r.next >= first && r.next <= next {
		return nil
	}
	return OutOfRange(r.topic, r.partition, r.next, first, next)
}

// failed counts the failure and waits before the next try; it answers an error
// when there is no use in one.
func (r *Reader) failed(ctx context.Context, err error) error {
	if err != nil {
		if staleLeader(err) {
			r.cluster.leaders.forget(r.name)
		}
		r.cluster.metrics.failed("fetch", reason(err))
		if !retriable(err) {
			return away(err, "reading from Kafka")
		}
		if !r.failing {
			r.failing = true
			r.cluster.log.Warn("cannot read from Kafka, trying on", "topic", r.topic, "partition", r.partition, "offset", r.next, "err", err)
		}
	}
	if !r.wait.sleep(ctx) {
		return ctx.Err()
	}
	return nil
}

func (r *Reader) recovered() {
	r.wait.reset()
	if r.failing {
		r.failing = false
		r.cluster.log.Info("reading from Kafka again", "topic", r.topic, "partition", r.partition, "offset", r.next)
	}
}
