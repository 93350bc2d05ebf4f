package kafka

import (
	"sync"
	"time"

	"trunkline/internal/kafka/wire"
)

// recordBuffer collects the records of one partition in batches and sends them one at
// a time. Records that arrive while a batch is in flight are collected in the next
// one, so batches grow with the load and no record is delayed on purpose. A goroutine
// runs only while there is something to send.
type recordBuffer struct {
	producer  *Producer
	topic     string
	partition int
	prefix    []byte // of every request, up to the batch

	mu            sync.Mutex
	queue         []*batch // the last one still accepts records
	running       bool
	lastTimestamp int64 // last timestamp assigned to a record; never decreases

	// The fields below belong to the running goroutine.
	seq            wire.ProducerState
	leader         leadership // of the last request
	throttledUntil time.Time  // the broker accepts no request before this time
}

// batch is a produce request, from the first record to its response.
type batch struct {
	wire.BatchBuilder   // after recordBuffer.prefix
	deadline, startedAt time.Time
	base                int64 // offset of the first record, once written; -1: unknown
	shares              []callShare

	sealed     bool
	uncertain  bool // an earlier attempt may have been written
	frameInUse bool // an abandoned connection may still read Encoded
}

// callShare is the number of records in a batch that belong to one call.
type callShare struct {
	call    *produceCall
	records int
}

func newRecordBuffer(p *Producer, key partitionKey) *recordBuffer {
	b := appendProduceHeader(nil, 1)
	b = wire.AppendString(b, p.cluster.withPrefix(key.topic))
	b = wire.AppendInt32(b, 1)
	b = wire.AppendInt32(b, int32(key.partition))
	b = wire.AppendInt32(b, 0) // size of the batch
	return &recordBuffer{producer: p, topic: key.topic, partition: key.partition, prefix: b,
		seq: wire.ProducerState{ProducerID: -1}}
}

// add appends records in order and schedules their delivery. The caller holds
// Producer.mu for reading, so that Close has not started to wait.
func (rb *recordBuffer) add(records []Record, c *produceCall) {
	rb.mu.Lock()
	defer rb.mu.Unlock()

	now := time.Now()
	for i := range records {
		b := rb.batchFor(&records[i], now)
		b.Append(&records[i], rb.timestampOf(&records[i], now))
		n := len(b.shares)
		if n > 0 && b.shares[n-1].call == c {
			b.shares[n-1].records++
		} else {
			b.shares = append(b.shares, callShare{c, 1})
		}
	}

	if !rb.running {
		rb.running = true
		rb.producer.sending.Add(1)
		go rb.run()
	}
}

// batchFor returns the batch for r: the last one, or a new one if the last is full.
func (rb *recordBuffer) batchFor(r *Record, now time.Time) *batch {
	n := len(rb.queue)
	if n > 0 {
		b := rb.queue[n-1]
		if b.Size()+wire.RecordSize(r) <= rb.producer.cfg.BatchBytes {
			return b
		}
	}

	var memory []byte
	if pooled, ok := rb.producer.framePool.Get().(*[]byte); ok {
		memory = *pooled
	}

	b := &batch{BatchBuilder: wire.NewBatchBuilder(memory, rb.prefix), base: -1, startedAt: now,
		deadline: now.Add(rb.producer.cfg.DeliveryTimeout)}
	rb.queue = append(rb.queue, b)

	return b
}

// timestampOf returns the record's timestamp in milliseconds. Timestamps assigned here never
// decrease within the partition, even if the clock is set back.
func (rb *recordBuffer) timestampOf(r *Record, now time.Time) int64 {
	if !r.Time.IsZero() {
		return r.Time.UnixMilli()
	}
	rb.lastTimestamp = max(rb.lastTimestamp, now.UnixMilli())
	return rb.lastTimestamp
}

// run sends the queued batches and returns.
func (rb *recordBuffer) run() {
	defer rb.producer.sending.Done()

	for {
		rb.mu.Lock()
		if len(rb.queue) == 0 {
			// Under the lock of add, so that a record added after it starts another goroutine.
			rb.queue, rb.running = nil, false
			rb.mu.Unlock()
			return
		}

		b := rb.queue[0]
		rb.queue[0] = nil
		rb.queue = rb.queue[1:]
		rb.mu.Unlock()

		rb.deliver(b)
	}
}
