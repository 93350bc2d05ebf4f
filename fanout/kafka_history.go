package fanout

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// kafkaHistory reads records older than the ring from Kafka and shares them between
// replays. It caches the most recently used chunks, bounded in bytes, while a replay
// runs.
type kafkaHistory struct {
	log       Log
	limit     int64 // of bytes
	compress  bool
	metrics   *metrics
	onLoad    func(context.Context, *batch) // called for each chunk before it is shared
	fillSlots chan struct{}                 // bounds the concurrent reads

	mu         sync.Mutex
	partitions map[int]*partitionHistory
	lru        list.List   // of filled *chunk, last used first
	bytes      int64       // of the chunks in lru
	users      int         // calls of pin without unpin: replays that run
	dropTimer  *time.Timer // drops all chunks; set while no replay runs
}

// partitionHistory holds the chunks and known gaps of one partition.
type partitionHistory struct {
	chunks []*chunk // ordered by offset, without overlap
	gaps   []*kafka.GapError
}

// chunk holds the frames of a range of offsets of a partition. It is immutable once
// ready is closed.
type chunk struct {
	partition  int
	from, upTo int64 // complete for offsets from <= offset < upTo
	frames     []frame
	bytes      int64
	err        error
	ready      chan struct{}
	lruElement *list.Element // in lru; nil while it is being read
}

const (
	// chunkAlign aligns the first offsets of chunks, so that subscribers that
	// resume at similar offsets share them.
	chunkAlign = 32
	// maxHistoryFills bounds the chunks that are read at the same time.
	maxHistoryFills = 8
	// historyReadTimeout bounds the reading of one chunk; a replay retries after it.
	historyReadTimeout = 10 * time.Second
	// historyLinger is the time for which chunks are kept after the last replay.
	historyLinger = 5 * time.Second
	// maxKnownGaps bounds the gaps stored per partition.
	maxKnownGaps = 64
)

func newKafkaHistory(log Log, limit int64, compress bool, m *metrics,
	loaded func(context.Context, *batch)) *kafkaHistory {
	return &kafkaHistory{log: log, limit: limit, compress: compress, metrics: m, onLoad: loaded,
		fillSlots: make(chan struct{}, maxHistoryFills), partitions: make(map[int]*partitionHistory)}
}

// pin keeps chunks in memory until unpin.
func (h *kafkaHistory) pin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users++
	if h.dropTimer != nil {
		h.dropTimer.Stop()
		h.dropTimer = nil
	}
}

func (h *kafkaHistory) unpin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.users--
	if h.users == 0 && h.lru.Len() > 0 {
		h.dropTimer = time.AfterFunc(historyLinger, h.expire)
	}
}

func (h *kafkaHistory) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.users == 0 {
		h.dropAll()
	}
}

// close drops all chunks.
func (h *kafkaHistory) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dropTimer != nil {
		h.dropTimer.Stop()
		h.dropTimer = nil
	}
	h.dropAll()
}

// dropAll removes all chunks. Chunks whose read is in progress are not kept afterwards.
func (h *kafkaHistory) dropAll() {
	for _, p := range h.partitions {
		p.chunks = nil
	}
	h.lru.Init()
	h.bytes = 0
	h.metrics.historyBytes.Set(0)
}

// read returns the frames of one chunk from offset on, and the offset, at most end, up
// to which they are complete. end is a known end of the log beyond offset, so that
// read never waits for records that are not written yet. It returns *kafka.GapError
// when the log does not continue at offset, or no longer contains end: it may have
// been truncated, and have grown, since its stream read it.
func (h *kafkaHistory) read(ctx context.Context, partition int, offset int64,
	end kafka.LogPosition) (frames []frame, upTo int64, err error) {
	for {
		c, mine := h.claim(partition, offset)
		if mine {
			h.fill(ctx, c, offset, end.TopicID)
		}

		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}

		// A gap before this offset that another caller met is none for this one: it claims again, behind the gap.
		if gap, ok := kafka.PassableGap(c.err); c.err != nil && (mine || !ok || gap.Resume > offset) {
			return nil, 0, c.err
		}

		if c.err == nil && c.from <= offset && offset < c.upTo {
			first, _ := slices.BinarySearchFunc(c.frames, offset,
				func(f frame, offset int64) int { return cmp.Compare(f.offset, offset) })
			frames, upTo = c.frames[first:], min(c.upTo, end.Offset)
			return frames, upTo, checkEpochs(partition, frames, end)
		}
	} // the chunk ended before offset: the next one begins there
}

// checkEpochs returns *kafka.GapError when a frame before end has a later leader epoch
// than end: then the records up to end were replaced after a truncation.
func checkEpochs(partition int, frames []frame, end kafka.LogPosition) error {
	n, _ := slices.BinarySearchFunc(frames, end.Offset,
		func(f frame, offset int64) int { return cmp.Compare(f.offset, offset) })
	if n == 0 || end.LeaderEpoch == kafka.UnknownEpoch || frames[n-1].epoch <= end.LeaderEpoch {
		return nil
	}
	return &kafka.GapError{Topic: event.TopicEvents, Partition: partition, Kind: kafka.GapTruncated,
		Offset: frames[0].offset, Resume: frames[0].offset, LeaderEpoch: kafka.UnknownEpoch}
}

// claim returns the chunk that holds offset or will hold it, and whether the caller
// must fill it. A chunk that the caller fills may end before offset.
func (h *kafkaHistory) claim(partition int, offset int64) (c *chunk, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	p := h.partition(partition)
	i, _ := slices.BinarySearchFunc(p.chunks, offset, func(c *chunk, offset int64) int {
		if c.from <= offset {
			return -1
		}
		return 1
	}) // chunks[i-1] is the last that begins at or before offset

	from := offset - offset%chunkAlign
	if i > 0 {
		c := p.chunks[i-1]
		if offset < c.upTo {
			if c.lruElement != nil {
				h.lru.MoveToFront(c.lruElement)
			}
			return c, false
		}

		from = max(from, c.upTo)
	}

	for _, gap := range p.gaps {
		if gap.Resume <= offset {
			from = max(from, gap.Resume)
		}
	}

	c = &chunk{partition: partition, from: from, upTo: math.MaxInt64, ready: make(chan struct{})}
	if i < len(p.chunks) {
		c.upTo = p.chunks[i].from
	}

	p.chunks = slices.Insert(p.chunks, i, c)
	return c, true
}

func (h *kafkaHistory) partition(partition int) *partitionHistory {
	p := h.partitions[partition]
	if p == nil {
		p = &partitionHistory{}
		h.partitions[partition] = p
	}
	return p
}

// fill reads the chunk for a request of the offset asked, which is in the chunk or
// after it, and closes ready.
func (h *kafkaHistory) fill(ctx context.Context, c *chunk, asked int64, log kafka.TopicID) {
	// The read continues when ctx is canceled, since other replays wait for this chunk
	// too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyReadTimeout)
	defer cancel()

	from := kafka.LogPosition{TopicID: log, Offset: c.from, LeaderEpoch: kafka.UnknownEpoch}
	b, err := h.load(ctx, c.partition, from, c.upTo)
	for err != nil {
		// The records between the start of the chunk and the requested offset may be
		// deleted.
		gap, ok := kafka.PassableGap(err)
		if !ok || gap.ReusesOffsets() || gap.Resume > asked {
			break
		}
		from.Offset = gap.Resume
		b, err = h.load(ctx, c.partition, from, c.upTo)
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(c.ready)

	p := h.partition(c.partition)
	i := slices.Index(p.chunks, c)
	if err != nil {
		c.err = err
		if i >= 0 {
			p.chunks = slices.Delete(p.chunks, i, i+1)
		}
		if gap, ok := errors.AsType[*kafka.GapError](err); ok {
			h.addGap(c.partition, gap)
		}

		return
	}

	c.frames, c.from, c.upTo, c.bytes = b.frames, b.start, b.end, int64(b.RetainedBytes)
	if i < 0 { // it was dropped during the read
		return
	}

	c.lruElement = h.lru.PushFront(c)
	h.bytes += c.bytes
	for h.bytes > h.limit && h.lru.Len() > 1 {
		h.evict(h.lru.Back().Value.(*chunk))
	}

	h.metrics.historyBytes.Set(float64(h.bytes))
}

func (h *kafkaHistory) evict(c *chunk) {
	h.lru.Remove(c.lruElement)
	h.bytes -= c.bytes
	p := h.partitions[c.partition]
	i := slices.Index(p.chunks, c)
	if i >= 0 {
		p.chunks = slices.Delete(p.chunks, i, i+1)
	}
}

// load reads the records of one Read from Kafka, up to the maximum size of a chunk.
func (h *kafkaHistory) load(ctx context.Context, partition int, from kafka.LogPosition, upTo int64) (*batch, error) {
	select {
	case h.fillSlots <- struct{}{}:
		defer func() { <-h.fillSlots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("reading history: %w", ctx.Err())
	}

	reader := readEvents(h.log, partition, from)
	defer reader.Close()

	records, err := reader.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading history: %w", err)
	}

	h.metrics.historyReads.Inc()
	n, size, most := 0, int64(0), h.chunkBytes()
	for n < len(records) && records[n].Offset < upTo && (n == 0 || size < most) {
		size += int64(len(records[n].Value))
		n++
	}

	if n == 0 { // only transaction markers up to the next chunk
		return &batch{start: from.Offset, end: upTo}, nil
	}

	b, _ := newBatch(records[:n], &interner{}, h.compress)
	b.start = from.Offset
	h.onLoad(ctx, b)

	return b, nil
}

// chunkBytes returns the maximum size of a chunk: a share of the limit that lets one
// subscriber replay all partitions from cached chunks.
func (h *kafkaHistory) chunkBytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(max(h.limit/int64(4*max(len(h.partitions), 1)), 16<<10), 1<<20)
}

// recordGap stores a gap, so that clients that resume before it are refused.
func (h *kafkaHistory) recordGap(partition int, gap *kafka.GapError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addGap(partition, gap)
}

func (h *kafkaHistory) addGap(partition int, gap *kafka.GapError) {
	p := h.partition(partition)
	if gap.ReusesOffsets() { // the log was truncated and other records have these offsets
		p.gaps, p.chunks = nil, nil
		return
	}

	// What has expired need not be remembered: the first offset of the log says it.
	if gap.Kind == kafka.GapExpired || len(p.gaps) == maxKnownGaps ||
		slices.ContainsFunc(p.gaps,
			func(known *kafka.GapError) bool { return known.Offset <= gap.Offset && gap.Resume <= known.Resume }) {
		return
	}

	p.gaps = append(p.gaps, gap)
}

// forget drops the chunks of a partition.
func (h *kafkaHistory) forget(partition int) {
	h.mu.Lock()
	defer h.mu.Unlock()

	p := h.partitions[partition]
	if p == nil {
		return
	}

	for _, c := range p.chunks {
		if c.lruElement != nil {
			h.lru.Remove(c.lruElement)
			h.bytes -= c.bytes
		}
	}

	p.chunks = nil
	h.metrics.historyBytes.Set(float64(h.bytes))
}

// gapAfter returns the first known gap at or after an offset and before end.
func (h *kafkaHistory) gapAfter(partition int, offset, end int64) (first *kafka.GapError) {
	h.mu.Lock()
	defer h.mu.Unlock()

	p := h.partitions[partition]
	if p != nil {
		for _, gap := range p.gaps {
			if gap.Resume > offset && gap.Offset < end && (first == nil || gap.Offset < first.Offset) {
				first = gap
			}
		}
	}

	return first
}
