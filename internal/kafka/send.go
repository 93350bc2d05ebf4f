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
	"trunkline/internal/retry"
)

// deliver sends one batch and finishes the calls that wait for it.
func (l *recordBuffer) deliver(b *batch) {
	ctx, cancel := context.WithDeadline(l.producer.ctx, b.deadline)
	err := b.compress(len(l.prefix), codecs[l.producer.cluster.cfg.Compression])
	if err == nil {
		err = l.send(ctx, b)
	}
	cancel()
	if tooLarge(err) && b.records > 1 {
		halves, unpackErr := b.halves(l.prefix)
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
		l.seq.advance(b.records)
		size := float64(len(b.frame) - len(l.prefix))
		m.produced.WithLabelValues(l.topic).Add(float64(b.records))
		m.producedBytes.WithLabelValues(l.topic).Add(size)
		m.batchRecords.Observe(float64(b.records))
		m.batchBytes.Observe(size)
		m.produceTime.Observe(time.Since(b.started).Seconds())
	} else {
		err = l.undelivered(b, err)
	}
	at := b.base
	for _, w := range b.waiting {
		w.call.finish(w.records, at, err)
		if at >= 0 {
			at += int64(w.records)
		}
	}
	if frame := b.frame; !b.lent {
		l.producer.buffers.Put(&frame)
	}
}

// undelivered returns the error of a batch that could not be delivered.
func (l *recordBuffer) undelivered(b *batch, err error) error {
	if !b.uncertain && outcomeOf(err) == refused {
		return away(err, "producing")
	}
	if b.uncertain {
		err = errors.Join(ErrOutcomeUnknown, err)
		// The broker may or may not have counted this batch: the next ones start a new
		// sequence.
		l.seq = sequence{id: -1}
	}
	return fault.Unavailable(err, retryAfter, "Kafka did not take the records in time")
}

// send sends a batch until it is written, finally rejected, or ctx ends.
func (l *recordBuffer) send(ctx context.Context, b *batch) error {
	wait := retry.Backoff{First: 20 * time.Millisecond, Max: time.Second}
	for {
		if !retry.Sleep(ctx, time.Until(l.throttledUntil)) {
			return ctx.Err()
		}
		err := l.try(ctx, b)
		if err == nil {
			return nil
		}
		l.producer.cluster.metrics.failed("produce", reason(err))
		if l.producer.cluster.WriteFault() != nil {
			return err
		}
		switch outcomeOf(err) {
		case written:
			return nil
		case refused:
			return err
		case lostSequence:
			if b.uncertain {
				return err
			}
			l.seq, b.sealed = sequence{id: -1}, false
		case broken:
			b.uncertain = true
			return err
		case again:
			if staleLeader(err) {
				l.producer.cluster.leaders.forget(l.producer.cluster.topic(l.topic), l.partition, l.leader)
			}
		}
		if !wait.Wait(ctx) {
			return err
		}
		l.producer.cluster.metrics.retries.Inc()
	}
}

// try sends the batch once.
func (l *recordBuffer) try(ctx context.Context, b *batch) error {
	c := l.producer.cluster
	if l.seq.id < 0 {
		id, epoch, err := c.newProducerID(ctx)
		if err != nil {
			return fmt.Errorf("getting a producer id: %w", err)
		}
		l.seq = sequence{id: id, epoch: epoch}
	}
	leader, err := c.leaders.leader(ctx, c.topic(l.topic), l.partition)
	if err != nil {
		return err
	}
	l.leader = leader
	if !b.sealed {
		b.seal(len(l.prefix), l.seq)
	}
	e := &exchange{key: protocol.Produce, version: produceVersion, frame: b.frame}
	asked := time.Now()
	if err := c.roundTrip(ctx, leader.address, e, requestTimeout+time.Second); err != nil {
		b.lent = true
		b.uncertain = b.uncertain || e.sent.Load() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		return err
	}
	base, stamped, throttle, err := readProduced(e.response)
	l.throttledUntil = time.Now().Add(throttle)
	c.clock.seen(asked, time.Now(), stamped)
	if errors.Is(err, errMalformed) || errors.Is(err, kafkago.RequestTimedOut) ||
		errors.Is(err, kafkago.NotEnoughReplicasAfterAppend) {
		b.uncertain = true
	}
	if err == nil {
		b.base = base
	}
	return err
}

// seal completes the request. It copies a frame that a connection may still read.
func (b *batch) seal(prefix int, seq sequence) {
	if b.lent {
		b.frame, b.lent = append([]byte(nil), b.frame...), false
	}
	endFrame(b.frame)
	binary.BigEndian.PutUint32(b.frame[prefix-4:], uint32(len(b.frame)-prefix))
	sealBatch(b.frame[prefix:], b.records, b.firstTime, b.maxMs, seq, b.codec)
	b.sealed = true
}

// readProduced decodes a response about one partition. base is the offset of the
// batch's first record, -1 if the broker does not report it. stamped is the broker's
// timestamp in milliseconds, -1 if the topic uses the producer's. throttle is how long
// the broker accepts no more requests because of a quota.
func readProduced(response []byte) (base, stamped int64, throttle time.Duration, err error) {
	r := &wireReader{b: response}
	base, stamped, err = -1, -1, errMalformed
	for range r.array(6) {
		r.string()
		for range r.array(30) {
			r.int32() // partition
			err = code(r.int16())
			base = r.int64()
			stamped = r.int64()
			r.int64() // log start
		}
	}
	throttle = time.Duration(r.int32()) * time.Millisecond
	if r.bad {
		return -1, -1, 0, errMalformed
	}
	return base, stamped, throttle, err
}
