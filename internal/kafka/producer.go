package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka/wire"
)

// ProducerConfig limits a producer. Zero fields use the defaults.
type ProducerConfig struct {
	MaxBytes        int           // bytes of unacknowledged records; default 64 MiB
	BatchBytes      int           // of one batch of several records; default 1,000,000, which every topic accepts
	DeliveryTimeout time.Duration // from Produce to the error; default 30 s
}

func (c ProducerConfig) withDefaults() ProducerConfig {
	if c.MaxBytes <= 0 {
		c.MaxBytes = 64 << 20
	}
	if c.BatchBytes <= 0 {
		c.BatchBytes = 1_000_000
	}
	if c.DeliveryTimeout <= 0 {
		c.DeliveryTimeout = 30 * time.Second
	}

	return c
}

// Producer writes records with acks=all, in order within each partition, and each
// exactly once: it resends a batch without a response under the same sequence number.
// It is safe for concurrent use.
type Producer struct {
	cluster   *Cluster
	cfg       ProducerConfig
	freeBytes *semaphore.Weighted
	framePool sync.Pool // *[]byte

	ctx     context.Context // canceled when Close stops waiting
	cancel  context.CancelFunc
	sending sync.WaitGroup // record buffers that are sending, and shared requests

	mu            sync.RWMutex // acquired before recordBuffer.mu
	closed        bool
	recordBuffers map[partitionKey]*recordBuffer

	queuesMu sync.Mutex
	queues   map[string]*produceQueue // by the broker's address
}

type partitionKey struct {
	topic     string
	partition int
}

// NewProducer creates a producer. It has no goroutine while there is nothing to send.
func (c *Cluster) NewProducer(cfg ProducerConfig) *Producer {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	return &Producer{
		cluster: c, cfg: cfg,
		freeBytes: semaphore.NewWeighted(int64(cfg.MaxBytes)),
		ctx:       ctx, cancel: cancel,
		recordBuffers: map[partitionKey]*recordBuffer{},
		queues:        map[string]*produceQueue{},
	}
}

// Produce writes the records and returns nil only if all of them are durable. It
// copies them at once. If a record is larger than topics.MaxRecordBytes, it returns
// fault.KindTooLarge and sends none. ErrTopicLimit means that the topic rejects at
// least one record, and that all others are durable. Any other error means that at
// least one record is not known to be durable; if it wraps ErrOutcomeUnknown, as after
// the end of ctx, some may have been written all the same.
func (p *Producer) Produce(ctx context.Context, records ...Record) error {
	_, err := p.ProduceWithOffsets(ctx, records...)
	return err
}

// Appended is the range of a partition's log with the records of a call: from First to
// before Next. If another producer wrote between them, Next - First is larger than
// their number. First is -1 if unknown, as after a repeated request whose first
// response was lost.
type Appended struct{ First, Next int64 }

var unknownOffsets = Appended{-1, -1}

// ProduceWithOffsets is like Produce for records of one partition, and returns their offsets.
func (p *Producer) ProduceWithOffsets(ctx context.Context, records ...Record) (Appended, error) {
	if len(records) == 0 {
		return unknownOffsets, nil
	}

	size := 0
	for i := range records {
		n := wire.RecordSize(&records[i])
		if n > topics.MaxRecordBytes-wire.BatchHeaderBytes {
			p.cluster.metrics.countError("produce", "size")
			return unknownOffsets,
				fault.New(fault.KindTooLarge, "a record is larger than %d bytes", topics.MaxRecordBytes)
		}

		size += n
	}

	// Such a broker closes the connection, which would leave the outcome unknown: here none is written.
	if err := p.cluster.WriteFault(); err != nil {
		return unknownOffsets, fault.Unavailable(err, retryAfter, "the embedded broker takes no writes")
	}

	partitions, err := p.choosePartitions(ctx, records)
	if err != nil {
		return unknownOffsets, err
	}

	size = min(size, p.cfg.MaxBytes) // a larger call takes the whole buffer
	if err := p.acquireBuffer(ctx, int64(size)); err != nil {
		return unknownOffsets, err
	}

	c := &produceCall{done: make(chan struct{}), unfinished: len(records), appended: Appended{-1, 0}, release: func() {
		p.freeBytes.Release(int64(size))
		p.cluster.metrics.inFlight.Sub(float64(size))
	}}
	if err := p.enqueue(records, partitions, c); err != nil {
		c.release()
		return unknownOffsets, err
	}

	select {
	case <-c.done:
		return c.appended, c.err
	case <-ctx.Done():
		return unknownOffsets,
			fault.Unavailable(errors.Join(ErrOutcomeUnknown, ctx.Err()), retryAfter,
				"Kafka has not confirmed the records in time")
	}
}

// acquireBuffer waits for size bytes of free buffer space.
func (p *Producer) acquireBuffer(ctx context.Context, size int64) error {
	if !p.freeBytes.TryAcquire(size) {
		if err := p.freeBytes.Acquire(ctx, size); err != nil {
			return fault.Unavailable(err, time.Second, "too many records wait for Kafka")
		}
	}
	p.cluster.metrics.inFlight.Add(float64(size))
	return nil
}

// enqueue appends the records to the buffers of their partitions.
func (p *Producer) enqueue(records []Record, partitions []int, c *produceCall) error {
	p.mu.RLock()
	if p.closed {
		p.mu.RUnlock()
		return fault.Unavailable(nil, retryAfter, "shutting down")
	}

	var missing bool
	for i := range records {
		if p.recordBuffers[partitionKey{records[i].Topic, partitions[i]}] == nil {
			missing = true
			break
		}
	}

	// Buffers are never removed, so the second call finds them all, and is the last.
	if missing {
		p.mu.RUnlock()
		p.addRecordBuffers(records, partitions)
		return p.enqueue(records, partitions, c)
	}
	defer p.mu.RUnlock()

	for i := 0; i < len(records); {
		rb := p.recordBuffers[partitionKey{records[i].Topic, partitions[i]}]
		from := i
		for i++; i < len(records) && partitions[i] == rb.partition && records[i].Topic == rb.topic; i++ {
		}
		rb.add(records[from:i], c)
	}

	return nil
}

func (p *Producer) addRecordBuffers(records []Record, partitions []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range records {
		key := partitionKey{records[i].Topic, partitions[i]}
		if p.recordBuffers[key] == nil {
			p.recordBuffers[key] = newRecordBuffer(p, key)
		}
	}
}

// Close accepts no more records and waits until the accepted ones are delivered or
// have failed. When ctx ends it stops waiting and returns fault.KindUnavailable: unfinished
// records fail, with ErrOutcomeUnknown if a broker may have received them.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	// Under the lock that enqueue holds for reading: after it no buffer begins to send, and Wait sees all.
	p.closed = true
	p.mu.Unlock()

	flushed := make(chan struct{})
	go func() {
		p.sending.Wait()
		close(flushed)
	}()
	defer p.cancel()

	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		p.cancel()
		<-flushed // returns immediately: no delivery waits for the network any more
		return fault.Unavailable(ctx.Err(), retryAfter, "records were left unsent")
	}
}

// produceCall is a Produce that waits for its records.
type produceCall struct {
	mu         sync.Mutex
	unfinished int   // records that are neither written nor have failed
	err        error // the first error; that of a record that is too large only if there is no other
	appended   Appended
	done       chan struct{} // closed when unfinished is 0
	release    func()        // gives the buffer space of the call back
}

// finish records the outcome of some of the call's records, written at offset base;
// -1: unknown.
func (c *produceCall) finish(records int, base int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case base < 0 || err != nil || c.appended == unknownOffsets:
		c.appended = unknownOffsets
	case c.appended.First < 0:
		c.appended = Appended{base, base + int64(records)}
	default: // a partition's batches are delivered in order
		c.appended.Next = base + int64(records)
	}

	// ErrTopicLimit promises that all other records are durable, so it yields to any other error.
	if c.err == nil || err != nil && fault.KindOf(c.err) == fault.KindTooLarge {
		c.err = err
	}

	c.unfinished -= records
	if c.unfinished == 0 {
		c.release()
		close(c.done)
	}
}
