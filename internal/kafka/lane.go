package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/fault"
)

// lane sends one partition's batches, one at a time. Records that come while a
// batch is on its way gather in the next one, so batches grow with the load
// and nothing ever waits for company. A goroutine runs only while there is
// something to send.
type lane struct {
	producer  *Producer
	topic     string
	partition int
	prefix    []byte // of every request, up to the batch

	mu      sync.Mutex
	queue   []*batch // the last one still takes records
	running bool
	stamped int64 // the last time given to a record, which never goes back

	seq sequence // of the running goroutine
}

// batch is a produce request being filled, then sent.
type batch struct {
	frame             []byte // lane.prefix, batch header, records
	records           int
	firstTime, maxMs  int64
	deadline, started time.Time
	waiting           []share

	sealed    bool
	uncertain bool // an earlier try may have been written
	lent      bool // a connection that was given up may still read frame
}

// share is how many of a batch's records belong to one call.
type share struct {
	call    *call
	records int
}

var errNoProducerID = errors.New("no producer id")

func newLane(p *Producer, key partitionKey) *lane {
	b := appendHead(nil, protocol.Produce, produceVersion, p.cluster.cfg.clientID())
	b = appendInt16(b, -1) // no transaction
	b = appendInt16(b, -1) // acks: all
	b = appendInt32(b, int32(requestTimeout.Milliseconds()))
	b = appendInt32(b, 1)
	b = appendString(b, p.cluster.topic(key.topic))
	b = appendInt32(b, 1)
	b = appendInt32(b, int32(key.partition))
	b = appendInt32(b, 0) // size of the batch
	return &lane{producer: p, topic: key.topic, partition: key.partition, prefix: b, seq: sequence{id: -1}}
}

// add appends records, in order, and sees to it that they are sent. The
// caller holds producer.mu for reading, so Close has not begun to wait.
func (l *lane) add(records []Record, c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for i := range records {
		b := l.open(&records[i], now)
		b.append(&records[i], l.stamp(&records[i], now))
		if n := len(b.waiting); n > 0 && b.waiting[n-1].call == c {
			b.waiting[n-1].records++
		} else {
			b.waiting = append(b.waiting, share{c, 1})
		}
	}
	if !l.running {
		l.running = true
		l.producer.sending.Add(1)
		go l.run()
	}
}

// open is the batch that takes r: the last one, or a new one when it is full.
func (l *lane) open(r *Record, now time.Time) *batch {
	if n := len(l.queue); n > 0 {
		if b := l.queue[n-1]; len(b.frame)-len(l.prefix)+recordSize(r) <= l.producer.cfg.BatchBytes {
			return b
		}
	}
	var frame []byte
	if kept, ok := l.producer.buffers.Get().(*[]byte); ok {
		frame = (*kept)[:0]
	}
	frame = append(append(frame, l.prefix...), make([]byte, batchOverhead)...)
	b := &batch{frame: frame, started: now, deadline: now.Add(l.producer.cfg.DeliveryTimeout)}
	l.queue = append(l.queue, b)
	return b
}

// stamp is the record's timestamp in milliseconds. Times we give ourselves
// never go back within the partition, whatever the clock does.
func (l *lane) stamp(r *Record, now time.Time) int64 {
	if !r.Time.IsZero() {
		return r.Time.UnixMilli()
	}
	l.stamped = max(l.stamped, now.UnixMilli())
	return l.stamped
}

func (b *batch) append(r *Record, ms int64) {
	if b.records == 0 {
		b.firstTime, b.maxMs = ms, ms
	}
	b.maxMs = max(b.maxMs, ms)
	b.frame = appendRecord(b.frame, r, int64(b.records), ms-b.firstTime)
	b.records++
}

// run sends what is queued and ends.
func (l *lane) run() {
	defer l.producer.sending.Done()
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.queue, l.running = nil, false
			l.mu.Unlock()
			return
		}
		b := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.mu.Unlock()
		l.deliver(b)
	}
}

// deliver sends one batch and tells those who wait for it.
func (l *lane) deliver(b *batch) {
	ctx, cancel := context.WithDeadline(l.producer.ctx, b.deadline)
	err := l.send(ctx, b)
	cancel()
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
		l.producer.cluster.log.Warn("records not delivered", "topic", l.topic, "partition", l.partition,
			"records", b.records, "outcome_unknown", b.uncertain, "err", err)
		err = l.undelivered(b, err)
	}
	for _, w := range b.waiting {
		w.call.finish(w.records, err)
	}
	if frame := b.frame; !b.lent {
		l.producer.buffers.Put(&frame)
	}
}

// undelivered is the error of a batch that was given up.
func (l *lane) undelivered(b *batch, err error) error {
	if !b.uncertain && verdictOn(err) == refused {
		return away(err, "producing")
	}
	if b.uncertain {
		err = errors.Join(ErrOutcomeUnknown, err)
		// The broker may or may not have counted this batch: the next ones
		// start a sequence of their own.
		l.seq = sequence{id: -1}
	}
	return fault.Unavailable(err, retryAfter, "Kafka did not take the records in time")
}

// send sends a batch until it is written, refused for good, or ctx ends.
func (l *lane) send(ctx context.Context, b *batch) error {
	wait := backoff{first: 20 * time.Millisecond, most: time.Second}
	for {
		err := l.try(ctx, b)
		if err == nil {
			return nil
		}
		l.producer.cluster.metrics.failed("produce", reason(err))
		switch verdictOn(err) {
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
				l.producer.cluster.leaders.forget(l.producer.cluster.topic(l.topic))
			}
		}
		if !wait.sleep(ctx) {
			return err
		}
		l.producer.cluster.metrics.retries.Inc()
	}
}

// verdict is what an answer to a batch means for it.
type verdict int

const (
	again        verdict = iota // the same batch may be sent again
	written                     // an earlier try was
	refused                     // it was not written and never will be
	lostSequence                // not written: the broker has lost count
	broken                      // the broker does not say
)

func verdictOn(err error) verdict {
	var refusal kafkago.Error
	if !errors.As(err, &refusal) {
		return again
	}
	switch refusal {
	case kafkago.DuplicateSequenceNumber:
		return written
	case kafkago.OutOfOrderSequenceNumber, kafkago.UnknownProducerId,
		kafkago.InvalidProducerEpoch, kafkago.InvalidProducerIDMapping:
		return lostSequence
	case kafkago.Unknown:
		// A broker whose disk is full says so after it has counted the
		// sequence (kfake does): a repeat would be taken for written.
		return broken
	}
	if retriable(err) {
		return again
	}
	return refused
}

// try sends the batch once.
func (l *lane) try(ctx context.Context, b *batch) error {
	c := l.producer.cluster
	if l.seq.id < 0 {
		id, epoch, err := c.newProducerID(ctx)
		if err != nil {
			return errors.Join(errNoProducerID, err)
		}
		l.seq = sequence{id: id, epoch: epoch}
	}
	leader, err := c.leaders.leader(ctx, c.topic(l.topic), l.partition)
	if err != nil {
		return err
	}
	if !b.sealed {
		b.seal(len(l.prefix), l.seq)
	}
	e := &exchange{key: protocol.Produce, version: produceVersion, frame: b.frame}
	if err := c.roundTrip(ctx, leader, e, requestTimeout+time.Second); err != nil {
		b.lent = true
		b.uncertain = b.uncertain || e.sent.Load() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		return err
	}
	err = readProduced(e.response)
	if errors.Is(err, errMalformed) || errors.Is(err, kafkago.RequestTimedOut) ||
		errors.Is(err, kafkago.NotEnoughReplicasAfterAppend) {
		b.uncertain = true
	}
	return err
}

// seal completes the request. A frame that a connection may still read is
// left alone.
func (b *batch) seal(prefix int, seq sequence) {
	if b.lent {
		b.frame, b.lent = append([]byte(nil), b.frame...), false
	}
	endFrame(b.frame)
	binary.BigEndian.PutUint32(b.frame[prefix-4:], uint32(len(b.frame)-prefix))
	sealBatch(b.frame[prefix:], b.records, b.firstTime, b.maxMs, seq)
	b.sealed = true
}

// readProduced reads a response about one partition.
func readProduced(response []byte) error {
	r := &wireReader{b: response}
	err := errMalformed
	for range r.array(6) {
		r.string()
		for range r.array(30) {
			r.int32() // partition
			err = code(r.int16())
			r.int64() // base offset
			r.int64() // append time
			r.int64() // log start
		}
	}
	if r.bad {
		return errMalformed
	}
	return err
}
