package simulator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/panics"
	"trunkline/origination"
)

// MediaServer is the media_server of the simulator's call records.
const MediaServer = "simulator"

// idPrefix is the prefix of every simulated call's id.
const idPrefix = "sim-"

// panicPlace is the place of panics in a simulated call.
const panicPlace = "simulator_call"

// drainTimeout is the time that call records may take to be published at shutdown.
const drainTimeout = 5 * time.Second

// Config has the simulator's settings.
type Config struct {
	MaxCalls int // concurrent calls; fault.Unavailable above
}

// Validate checks c.
func (c Config) Validate() error {
	if c.MaxCalls < 1 {
		return errors.New("simulator: the limit of calls must be at least 1")
	}
	return nil
}

// RecordPublisher publishes a phone platform's call records and events. A nil error means that the record is
// durable.
type RecordPublisher interface {
	// PublishCDR publishes a call record.
	PublishCDR(ctx context.Context, accountID string, row event.CDR) error
	// PublishEvent publishes an event in the generic format.
	PublishEvent(ctx context.Context, accountID string, data []byte) error
}

// Simulator is an origination.Driver.
type Simulator struct {
	cfg     Config
	records RecordPublisher
	log     *slog.Logger
	panics  *panics.Recoverer

	followed chan struct{} // closed when report is set
	report   func(origination.Progress)
	ending   chan struct{}   // closed when Follow ends
	draining context.Context // from the end of Follow on; ends after drainTimeout
	running  sync.WaitGroup

	mu    sync.Mutex
	calls map[string]*call // by the returned id
	ended bool             // Follow is ending: no further call is taken
}

// New returns a simulator. It runs no calls before Follow.
func New(cfg Config, records RecordPublisher, reg prometheus.Registerer, log *slog.Logger) (*Simulator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	recoverer := panics.New(reg, log)
	recoverer.InitMetrics(panicPlace)
	return &Simulator{
		cfg: cfg, records: records, log: log, panics: recoverer,
		followed: make(chan struct{}), ending: make(chan struct{}), calls: map[string]*call{},
	}, nil
}

// Simulated reports whether the id is that of a simulated call.
func Simulated(callID string) bool { return strings.HasPrefix(callID, idPrefix) }

// Name implements origination.Namer, so that a simulated call is recognizable by its id: the order that
// Originate gets has it.
func (s *Simulator) Name(_ context.Context, order origination.Order) (id string, err error) {
	return idPrefix + order.ID, nil
}

// Originate implements origination.Driver.
func (s *Simulator) Originate(_ context.Context, order origination.Order) (origination.Placed, error) {
	if err := s.start(newCall(order.ID, order, time.Now(), origination.Accepted)); err != nil {
		return origination.Placed{}, err
	}
	return origination.Placed{CallID: order.ID}, nil
}

func (s *Simulator) start(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case s.ended:
		return fault.Unavailable(nil, time.Second, "Shutting down")
	case len(s.calls) >= s.cfg.MaxCalls:
		return fault.Unavailable(nil, time.Second, "Too many calls at once")
	}

	s.calls[c.id] = c
	s.running.Go(func() { s.run(c) })
	return nil
}

func (s *Simulator) forget(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.id)
}

// Cancel implements origination.Driver.
func (s *Simulator) Cancel(_ context.Context, callID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.calls[callID]
	if !ok {
		return fault.NotFound("There is no such call")
	}
	c.cancelOnce.Do(func() { close(c.cancelled) })
	return nil
}

// Follow implements origination.Driver.
func (s *Simulator) Follow(ctx context.Context, open []origination.OpenCall, report func(origination.Progress)) error {
	s.report = report
	close(s.followed)
	for _, lost := range s.Adopt(ctx, open) {
		report(origination.Progress{CallID: lost.CallID, State: origination.Ended, Cause: origination.CauseLost,
			At: time.Now()})
	}

	<-ctx.Done()
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()

	s.mu.Lock()
	s.ended, s.draining = true, draining
	s.mu.Unlock()

	close(s.ending)
	s.running.Wait()
	return nil
}

// Adopt implements origination.Adopter: it continues simulated calls.
func (s *Simulator) Adopt(_ context.Context, open []origination.OpenCall) (notAdopted []origination.OpenCall) {
	for _, o := range open {
		if !Simulated(o.CallID) {
			notAdopted = append(notAdopted, o)
			continue
		}

		err := s.start(newCall(o.CallID, o.Order, o.Since, o.State))
		if err != nil {
			s.log.Warn("an open simulated call is not continued", "call_id", o.CallID, "error", err)
			notAdopted = append(notAdopted, o)
		}
	}

	return notAdopted
}
