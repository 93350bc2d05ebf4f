package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/fault"
	"trunkline/internal/kafka/wire"
	"trunkline/internal/retry"
)

// deliver sends one batch and finishes the calls that wait for it.
func (rb *recordBuffer) deliver(b *batch) {
	ctx, cancel := context.WithDeadline(rb.producer.ctx, b.deadline)
	err := b.Compress(rb.producer.cluster.cfg.Compression)
	if err == nil {
		err = rb.sendWithRetries(ctx, b)
	}
	cancel()

	if isTooLarge(err) && b.Records > 1 {
		// The sequence was not advanced: the halves take the numbers of the batch that was not written.
		halves, unpackErr := b.split()
		if unpackErr == nil {
			for _, half := range halves {
				rb.deliver(half)
			}
			return
		}

		err = errors.Join(err, unpackErr)
	}

	m := rb.producer.cluster.metrics
	if err == nil {
		rb.seq.Advance(b.Records)
		size := float64(b.Size())
		m.produced.WithLabelValues(rb.topic).Add(float64(b.Records))
		m.producedBytes.WithLabelValues(rb.topic).Add(size)
		m.batchRecords.Observe(float64(b.Records))
		m.batchBytes.Observe(size)
		m.produceTime.Observe(time.Since(b.startedAt).Seconds())
	} else {
		err = rb.deliveryError(b, err)
	}

	offset := b.base
	for _, w := range b.shares {
		w.call.finish(w.records, offset, err)
		if offset >= 0 {
			offset += int64(w.records)
		}
	}

	frame := b.Encoded
	if !b.frameInUse {
		rb.producer.framePool.Put(&frame)
	}
}

// deliveryError returns the error of a batch that could not be delivered.
func (rb *recordBuffer) deliveryError(b *batch, err error) error {
	if !b.uncertain && outcomeOf(err) == outcomeRejected {
		return asFault(err, "producing")
	}

	if b.uncertain {
		err = errors.Join(ErrOutcomeUnknown, err)
		// The broker may or may not have counted this batch: the next ones start a new
		// sequence.
		rb.seq = wire.ProducerState{ProducerID: -1}
	}

	return fault.Unavailable(err, retryAfter, "Kafka did not take the records in time")
}

// sendWithRetries sends a batch until it is written, finally rejected, or ctx ends.
func (rb *recordBuffer) sendWithRetries(ctx context.Context, b *batch) error {
	backoff := retry.Backoff{First: 20 * time.Millisecond, Max: time.Second}
	for {
		if !retry.Sleep(ctx, time.Until(rb.throttledUntil)) {
			return ctx.Err()
		}

		err := rb.sendOnce(ctx, b)
		if err == nil {
			return nil
		}

		rb.producer.cluster.metrics.countError("produce", reasonLabel(err))
		// Repeats are useless until the process restarts.
		if rb.producer.cluster.WriteFault() != nil {
			return err
		}

		switch outcomeOf(err) {
		// The records are durable; only their offsets are not known.
		case outcomeAlreadyWritten:
			return nil
		case outcomeRejected:
			return err
		case outcomeSequenceRejected:
			// An earlier attempt may be in the log: under another sequence the batch would be written twice.
			if b.uncertain {
				return err
			}
			rb.seq, b.sealed = wire.ProducerState{ProducerID: -1}, false
		case outcomeUndetermined:
			b.uncertain = true
			return err
		case outcomeRetry:
			if staleLeader(err) {
				rb.producer.cluster.leaders.markStale(rb.producer.cluster.withPrefix(rb.topic), rb.partition, rb.leader)
			}
		}

		if !backoff.Wait(ctx) {
			return err
		}

		rb.producer.cluster.metrics.retries.Inc()
	}
}

// sendOnce sends the batch once.
func (rb *recordBuffer) sendOnce(ctx context.Context, b *batch) error {
	c := rb.producer.cluster
	if rb.seq.ProducerID < 0 {
		id, epoch, err := c.newProducerID(ctx)
		if err != nil {
			return fmt.Errorf("getting a producer id: %w", err)
		}
		rb.seq = wire.ProducerState{ProducerID: id, Epoch: epoch}
	}

	to := produceTarget{c.withPrefix(rb.topic), rb.partition}
	leader, err := c.leaders.leader(ctx, to.topic, to.partition)
	if err != nil {
		return err
	}

	rb.leader = leader
	if !b.sealed {
		b.completeFrame(rb.seq)
	}

	a := rb.producer.queueOf(leader.address).send(ctx, to, b)
	if a.err != nil {
		// Never reset: a later attempt that was not sent does not undo an earlier one.
		b.uncertain = b.uncertain || a.sent
		return a.err
	}

	rb.throttledUntil = time.Now().Add(a.result.throttle)
	c.clock.observe(a.result.sentAt, time.Now(), a.result.appendTime)
	err = a.result.err
	if errors.Is(err, wire.ErrMalformed) || errors.Is(err, kafkago.RequestTimedOut) ||
		errors.Is(err, kafkago.NotEnoughReplicasAfterAppend) {
		b.uncertain = true
	}
	if err == nil {
		b.base = a.result.base
	}

	return err
}

// completeFrame writes the sizes and the batch header. It copies a frame that a connection may still read.
func (b *batch) completeFrame(seq wire.ProducerState) {
	if b.frameInUse {
		b.Encoded, b.frameInUse = append([]byte(nil), b.Encoded...), false
	}
	setFrameSize(b.Encoded)
	size := b.Size()
	binary.BigEndian.PutUint32(b.Encoded[len(b.Encoded)-size-4:], uint32(size)) // ends the prefix
	b.Seal(seq)
	b.sealed = true
}
