package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Event is one event to be published.
type Event struct {
	Stream int
	Seq    uint64 // in the stream, from 1; 0: a probe
	JSON   []byte
}

// Sink publishes events in order, and returns nil when all are durable. The source reuses the
// events' memory after the return.
type Sink interface {
	Publish(ctx context.Context, events []Event) error
}

// EventEncoder appends an event with its stamp and padding; padding adds exactly its own length.
type EventEncoder func(dst []byte, s Stamp, run, account string, padding []byte) []byte

// SourceConfig configures a Source. Zero values are allowed, except for Run, Accounts, Size and
// Clock.
type SourceConfig struct {
	Run        string
	Accounts   []string // one stream for each
	Size       int      // bytes of an event
	Clock      Clock
	Encode     EventEncoder // nil: GenericEvent
	Publishers int          // concurrent batches, at most one per account; 0: 16
	Batch      int          // events per batch, due together; 0: all that are due after the previous batch
}

// MinEventSize returns the size of the smallest generic event with an account id.
func MinEventSize(account string) int { return EventEncoder(GenericEvent).MinSize(account) }

// MinSize returns the size of the smallest event with an account id, in bytes.
func (f EventEncoder) MinSize(account string) int {
	const now = 2e18 // Unix seconds have ten digits till 2286
	return len(f(nil, Stamp{At: now}, "12345678", account, nil))
}

func (c *SourceConfig) encoderOrDefault() EventEncoder {
	if c.Encode == nil {
		return GenericEvent
	}
	return c.Encode
}

// Validate returns the errors of the configuration.
func (c *SourceConfig) Validate() error {
	if len(c.Run) != RunLength {
		return fmt.Errorf("the run's name must have %d characters", RunLength)
	}
	if len(c.Accounts) == 0 || len(c.Accounts) > MaxStreams {
		return fmt.Errorf("from 1 to %d accounts are needed", MaxStreams)
	}
	if c.Clock.startedAt.IsZero() {
		return errors.New("a clock is needed")
	}
	if c.Publishers < 0 || c.Batch < 0 || c.Batch > MaxBatch {
		return fmt.Errorf("a source has publishers, and batches of at most %d events", MaxBatch)
	}

	for _, account := range c.Accounts {
		least := c.encoderOrDefault().MinSize(account)
		if c.Size < least {
			return fmt.Errorf("events of account %s have at least %d bytes", account, least)
		}
	}

	return nil
}

// defaultPublishers is the number of concurrent batches, defaultBatchLimit that of the events per batch.
const (
	defaultPublishers = 16
	defaultBatchLimit = 512
)

// MaxBatch is the highest number of events in a batch.
const MaxBatch = 10_000

// Source publishes numbered events at a rate. It keeps its schedule: an event that a slow sink
// delays is stamped with its due time, so that the latency includes the wait.
type Source struct {
	cfg           SourceConfig
	sink          Sink
	padding       []byte
	minSizes      []int           // by stream: bytes of an event without padding
	lastSeq       []uint64        // by stream: the last number, written by its publisher only
	durableCounts []atomic.Uint64 // by stream: number of durable events

	mu       sync.Mutex
	ackTimes Histogram
}

// NewSource returns a source.
func NewSource(cfg SourceConfig, sink Sink) (*Source, error) {
	cfg.Encode = cfg.encoderOrDefault()
	if cfg.Publishers == 0 {
		cfg.Publishers = defaultPublishers
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}

	s := &Source{cfg: cfg, sink: sink,
		lastSeq: make([]uint64, len(cfg.Accounts)), durableCounts: make([]atomic.Uint64, len(cfg.Accounts))}
	for _, account := range cfg.Accounts {
		s.minSizes = append(s.minSizes, cfg.Encode.MinSize(account))
	}

	// A fixed seed: all runs have the same padding, and compress alike.
	random := rand.New(rand.NewPCG(1, 2))
	s.padding = make([]byte, cfg.Size)
	for i := range s.padding {
		s.padding[i] = 'a' + byte(random.IntN(26))
	}

	return s, nil
}

// Published returns the number of acknowledged events of each stream.
func (s *Source) Published() []uint64 {
	counts := make([]uint64, len(s.durableCounts))
	for i := range counts {
		counts[i] = s.durableCounts[i].Load()
	}
	return counts
}

// Acks returns the latencies of the sink's acknowledgements so far.
func (s *Source) Acks() *Histogram {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.ackTimes
	return &h
}

// Probe publishes one uncounted event per stream.
func (s *Source) Probe(ctx context.Context) error {
	var events []Event
	for stream := range s.cfg.Accounts {
		events = append(events, s.newEvent(nil, Stamp{Stream: stream, At: s.cfg.Clock.Now().UnixNano()}))
		if len(events) == defaultBatchLimit || stream == len(s.cfg.Accounts)-1 {
			if err := s.sink.Publish(ctx, events); err != nil {
				return fmt.Errorf("publishing a probe: %w", err)
			}
			events = events[:0]
		}
	}

	return nil
}

// Run publishes rate events a second, for all accounts in turn, until ctx ends, then completes
// the begun batches. It may be called again: numbers continue. A source with a Batch accepts rate
// 0: it publishes as fast as its sink allows, and an event is due when it is created.
func (s *Source) Run(ctx context.Context, rate float64) error {
	if rate < 0 || rate == 0 && s.cfg.Batch == 0 {
		return fmt.Errorf("source: a rate above 0 is needed, or a batch, not %v", rate)
	}

	group, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	startedAt := s.cfg.Clock.Now()
	publishers := min(len(s.cfg.Accounts), s.cfg.Publishers)
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed error

	for number := range publishers {
		running.Go(func() {
			l := &publisher{source: s, number: number, publishers: publishers, rate: rate, startedAt: startedAt,
				next: number}
			if err := l.run(group); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
				cancel(err)
			}
		})
	}

	running.Wait()
	return failed
}

// newEvent creates an event of exactly the configured size.
func (s *Source) newEvent(dst []byte, stamp Stamp) Event {
	account := s.cfg.Accounts[stamp.Stream]
	padding := s.cfg.Size - s.minSizes[stamp.Stream]
	return Event{stamp.Stream, stamp.Seq, s.cfg.Encode(dst, stamp, s.cfg.Run, account, s.padding[:padding])}
}

// GenericEvent is the EventEncoder of generic events.
func GenericEvent(dst []byte, s Stamp, run, account string, padding []byte) []byte {
	dst = append(dst, `{"type":"AGENT_PERFORMANCE","account_id":"`...)
	dst = append(dst, account...) // ids need no escaping (docs/api.md)
	dst = append(dst, `",`...)
	dst = s.Append(dst, run)
	dst = append(dst, `,"data":{"padding":"`...)
	dst = append(dst, padding...)
	return append(dst, `"}}`...)
}
