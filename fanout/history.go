package fanout

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/event"
)

// history reads what is older than the ring from Kafka, once for everybody who
// wants it: in chunks of fixed offsets, of which the newest used are kept. A
// thousand clients that come back at once cost one read of each chunk.
type history struct {
	log      Log
	limit    int // chunks kept
	compress bool
	metrics  *metrics

	mu     sync.Mutex
	chunks map[chunkKey]*list.Element // of *chunk
	used   list.List                  // newest used first
	scans  map[int]*scan
}

// chunkOffsets is how many offsets of a partition one chunk covers.
const chunkOffsets = 512

type chunkKey struct {
	partition int
	number    int64 // offsets [number*chunkOffsets, (number+1)*chunkOffsets)
}

// chunk is immutable once ready is closed.
type chunk struct {
	key    chunkKey
	ready  chan struct{}
	frames []frame
	from   int64 // complete from this offset on; above the chunk's start where the log begins
	upTo   int64 // complete up to this offset; short of the chunk's end at the end of the log
	err    error
}

// scan is the one reader of a partition's history, kept for the next chunk.
type scan struct {
	mu     sync.Mutex
	reader Reader
	next   int64
	left   *batch // read beyond the last chunk
	strs   interner
}

func newHistory(log Log, limit int, compress bool, m *metrics) *history {
	return &history{log: log, limit: limit, compress: compress, metrics: m,
		chunks: make(map[chunkKey]*list.Element), scans: make(map[int]*scan)}
}

// read returns the frames at and after offset that lie in offset's chunk, and
// the offset, at most end, up to which that is complete. end is a known end of
// the log beyond offset, so that nothing waits for what is not there yet.
func (h *history) read(ctx context.Context, partition int, offset, end int64) (frames []frame, upTo int64, err error) {
	key := chunkKey{partition, offset / chunkOffsets}
	c, mine := h.claim(key, min(end, (key.number+1)*chunkOffsets))
	if mine {
		c.frames, c.from, c.err = h.scan(ctx, key, c.upTo)
		if c.err != nil {
			h.forget(key, c)
		}
		close(c.ready)
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if c.err != nil {
		return nil, 0, c.err
	}
	if offset < c.from {
		return nil, 0, errTrimmed
	}
	from := 0
	for from < len(c.frames) && c.frames[from].offset < offset {
		from++
	}
	return c.frames[from:], min(c.upTo, end), nil // others may have read on meanwhile
}

// errTrimmed says that the log no longer holds what a replay needs.
var errTrimmed = errors.New("older than the log")

// claim returns the chunk, and whether the caller must fill it. A chunk that
// ends before upTo was read near the log's end and is read again.
func (h *history) claim(key chunkKey, upTo int64) (c *chunk, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.chunks[key]; ok {
		if c := e.Value.(*chunk); c.upTo >= upTo {
			h.used.MoveToFront(e)
			return c, false
		}
		h.used.Remove(e)
	}
	c = &chunk{key: key, ready: make(chan struct{}), upTo: upTo}
	h.chunks[key] = h.used.PushFront(c)
	for h.used.Len() > h.limit {
		oldest := h.used.Back()
		delete(h.chunks, oldest.Value.(*chunk).key)
		h.used.Remove(oldest)
	}
	return c, true
}

func (h *history) forget(key chunkKey, c *chunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e, ok := h.chunks[key]; ok && e.Value == c {
		delete(h.chunks, key)
		h.used.Remove(e)
	}
}

// historyWait bounds the reading of one chunk, so that a broker that is away
// fails a replay (the client comes back) and does not hold it for ever.
const historyWait = 10 * time.Second

// scan reads a chunk's frames up to upTo from Kafka, going on where the last
// scan of the partition stopped when that fits.
func (h *history) scan(ctx context.Context, key chunkKey, upTo int64) (frames []frame, start int64, err error) {
	// Others wait for this chunk too: the one who reads it does so for all, also
	// when its own client has left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyWait)
	defer cancel()
	h.mu.Lock()
	s := h.scans[key.partition]
	if s == nil {
		s = &scan{next: -1}
		h.scans[key.partition] = s
	}
	h.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()

	first, _, err := h.log.Offsets(ctx, event.TopicEvents, key.partition)
	if err != nil {
		return nil, 0, fmt.Errorf("reading history: %w", err)
	}
	start = max(key.number*chunkOffsets, first)
	if s.next != start {
		s.close()
		s.reader, s.next = h.log.Reader(event.TopicEvents, key.partition, start), start
	}
	for s.next < upTo {
		if s.left == nil {
			records, err := s.reader.Read(ctx)
			if err != nil {
				s.close()
				return nil, 0, fmt.Errorf("reading history: %w", err)
			}
			s.left, _ = newBatch(records, &s.strs, h.compress)
			h.metrics.historyReads.Inc()
			if len(s.left.frames) == 0 {
				s.next, s.left = s.left.end, nil
				continue
			}
		}
		n := 0
		for n < len(s.left.frames) && s.left.frames[n].offset < upTo {
			n++
		}
		frames = append(frames, s.left.frames[:n]...)
		if n < len(s.left.frames) {
			s.left.frames = s.left.frames[n:]
			s.next = upTo
			break
		}
		s.next, s.left = s.left.end, nil
	}
	return frames, start, nil
}

func (s *scan) close() {
	if s.reader != nil {
		s.reader.Close()
	}
	s.reader, s.left, s.next = nil, nil, -1
}

// close ends the readers.
func (h *history) close() {
	h.mu.Lock()
	scans := h.scans
	h.scans = make(map[int]*scan)
	h.mu.Unlock()
	for _, s := range scans {
		s.mu.Lock()
		s.close()
		s.mu.Unlock()
	}
}
