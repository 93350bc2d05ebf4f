package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/fault"
	"trunkline/internal/kafka/wire"
	"trunkline/internal/retry"
)

// deliver sends one batch and finishes the calls that wait for it.
func (l *recordBuffer) deliver(b *batch) {
	ctx, cancel := context.WithDeadline(l.producer.ctx, b.deadline)
	err := b.Compress(l.producer.cluster.cfg.Compression)
	if err == nil {
		err = l.sendWithRetries(ctx, b)
	}
	cancel()
	if isTooLarge(err) && b.Records > 1 {
		halves, unpackErr := b.split()
		if unpackErr == nil {
			for _, half := range halves {
				l.deliver(half)
			}
			return
		}
		err = errors.Join(err, unpackErr)
	}
	m := l.producer.cluster.metrics
	if err == nil {
		l.seq.Advance(b.Records)
		size := float64(b.Size())
		m.produced.WithLabelValues(l.topic).Add(float64(b.Records))
		m.producedBytes.WithLabelValues(l.topic).Add(size)
		m.batchRecords.Observe(float64(b.Records))
		m.batchBytes.Observe(size)
		m.produceTime.Observe(time.Since(b.startedAt).Seconds())
	} else {
		err = l.deliveryError(b, err)
	}
	offset := b.base
	for _, w := range b.shares {
		w.call.finish(w.records, offset, err)
		if offset >= 0 {
			offset += int64(w.records)
		}
	}
	if frame := b.Frame; !b.frameInUse {
		l.producer.framePool.Put(&frame)
	}
}

// deliveryError returns the error of a batch that could not be delivered.
func (l *recordBuffer) deliveryError(b *batch, err error) error {
	if !b.uncertain && outcomeOf(err) == outcomeRejected {
		return asFault(err, "producing")
	}
	if b.uncertain {
		err = errors.Join(ErrOutcomeUnknown, err)
		// The broker may or may not have counted this batch: the next ones start a new
		// sequence.
		l.seq = wire.Sequence{ID: -1}
	}
	return fault.Unavailable(err, retryAfter, "Kafka did not take the records in time")
}

// sendWithRetries sends a batch until it is written, finally rejected, or ctx ends.
func (l *recordBuffer) sendWithRetries(ctx context.Context, b *batch) error {
	backoff := retry.Backoff{First: 20 * time.Millisecond, Max: time.Second}
	for {
		if !retry.Sleep(ctx, time.Until(l.throttledUntil)) {
			return ctx.Err()
		}
		err := l.sendOnce(ctx, b)
		if err == nil {
			return nil
		}
		l.producer.cluster.metrics.countError("produce", reasonLabel(err))
		if l.producer.cluster.WriteFault() != nil {
			return err
		}
		switch outcomeOf(err) {
		case outcomeAlreadyWritten:
			return nil
		case outcomeRejected:
			return err
		case outcomeSequenceRejected:
			if b.uncertain {
				return err
			}
			l.seq, b.sealed = wire.Sequence{ID: -1}, false
		case outcomeUndetermined:
			b.uncertain = true
			return err
		case outcomeRetry:
			if staleLeader(err) {
				l.producer.cluster.leaders.markStale(l.producer.cluster.topic(l.topic), l.partition, l.leader)
			}
		}
		if !backoff.Wait(ctx) {
			return err
		}
		l.producer.cluster.metrics.retries.Inc()
	}
}

// sendOnce sends the batch once.
func (l *recordBuffer) sendOnce(ctx context.Context, b *batch) error {
	c := l.producer.cluster
	if l.seq.ID < 0 {
		id, epoch, err := c.newProducerID(ctx)
		if err != nil {
			return fmt.Errorf("getting a producer id: %w", err)
		}
		l.seq = wire.Sequence{ID: id, Epoch: epoch}
	}
	leader, err := c.leaders.leader(ctx, c.topic(l.topic), l.partition)
	if err != nil {
		return err
	}
	l.leader = leader
	if !b.sealed {
		b.completeFrame(l.seq)
	}
	e := &exchange{key: protocol.Produce, version: produceVersion, frame: b.Frame}
	sentAt := time.Now()
	if err := c.roundTrip(ctx, leader.address, e, requestTimeout+time.Second); err != nil {
		b.frameInUse = true
		b.uncertain = b.uncertain || e.sent.Load() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		return err
	}
	base, appendTime, throttle, err := readProduceResponse(e.response)
	l.throttledUntil = time.Now().Add(throttle)
	c.clock.observe(sentAt, time.Now(), appendTime)
	if errors.Is(err, wire.ErrMalformed) || errors.Is(err, kafkago.RequestTimedOut) ||
		errors.Is(err, kafkago.NotEnoughReplicasAfterAppend) {
		b.uncertain = true
	}
	if err == nil {
		b.base = base
	}
	return err
}

// completeFrame writes the sizes and the batch header. It copies a frame that a connection may still read.
func (b *batch) completeFrame(seq wire.Sequence) {
	if b.frameInUse {
		b.Frame, b.frameInUse = append([]byte(nil), b.Frame...), false
	}
	setFrameSize(b.Frame)
	size := b.Size()
	binary.BigEndian.PutUint32(b.Frame[len(b.Frame)-size-4:], uint32(size)) // ends the prefix
	b.Seal(seq)
	b.sealed = true
}

// readProduceResponse decodes a response about one partition. base is the offset of the
// batch's first record, -1 if the broker does not report it. appendTime is the broker's
// timestamp in milliseconds, -1 if the topic uses the producer's. throttle is the time for
// which the broker accepts no more requests because of a quota.
func readProduceResponse(response []byte) (base, appendTime int64, throttle time.Duration, err error) {
	r := &wire.Reader{B: response}
	base, appendTime, err = -1, -1, wire.ErrMalformed
	for range r.ArrayLen(6) {
		r.Text()
		for range r.ArrayLen(30) {
			r.Int32() // partition
			err = errorFromCode(r.Int16())
			base = r.Int64()
			appendTime = r.Int64()
			r.Int64() // log start
		}
	}
	throttle = time.Duration(r.Int32()) * time.Millisecond
	if r.Bad {
		return -1, -1, 0, wire.ErrMalformed
	}
	return base, appendTime, throttle, err
}
