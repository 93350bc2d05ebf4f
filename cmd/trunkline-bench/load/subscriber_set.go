package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Load is a set of subscribers of one server.
type Load struct {
	cfg     Config
	target  *target
	workers []*socketReader
	bySlot  []*subscriber

	ctx       context.Context // ends with the load
	cancel    context.CancelFunc
	running   sync.WaitGroup // its goroutines
	dialSlots chan struct{}  // held during a connection attempt

	mu         sync.Mutex
	workerErrs error          // of a socketReader
	refusals   map[int]uint64 // refused upgrades by status; 0: no connection
}

// New returns the subscribers, which Connect connects.
func New(cfg Config) (*Load, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}

	cfg = cfg.withDefaults()
	target, err := newTarget(&cfg)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}

	l := &Load{cfg: cfg, target: target, dialSlots: make(chan struct{}, cfg.Dialers), refusals: map[int]uint64{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for range cfg.Workers {
		r := receiver{clock: cfg.Clock, resume: cfg.Resume, stamps: newStampReader(cfg.Run)}
		w, err := newSocketReader(r, target.tls != nil, l.handleDisconnect)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("load: %w", err)
		}

		l.workers = append(l.workers, w)
		l.running.Go(func() {
			if err := w.run(); err != nil {
				l.addError(err)
			}
		})
	}

	l.createSubscribers()
	return l, nil
}

// createSubscribers creates the subscribers of all groups and distributes the stalled ones evenly.
func (l *Load) createSubscribers() {
	for i := range l.cfg.Groups {
		g := &l.cfg.Groups[i]
		for range g.Sockets {
			slot := len(l.bySlot)
			c := &subscriber{slot: slot, group: g, fd: -1,
				stalled: int(float64(slot+1)*l.cfg.Stalled) > int(float64(slot)*l.cfg.Stalled)}
			if c.stalled {
				l.worker(c).receiver.tally.Stalled++
			} else {
				c.checks = make([]sequence, g.Streams)
			}

			l.bySlot = append(l.bySlot, c)
		}
	}
}

func (l *Load) worker(c *subscriber) *socketReader { return l.workers[c.slot%len(l.workers)] }

// Subscribers returns the number of all subscribers and of the reading ones.
func (l *Load) Subscribers() (all, reading int) {
	for _, c := range l.bySlot {
		if !c.stalled {
			reading++
		}
	}
	return len(l.bySlot), reading
}

// Tally returns the counts of the subscribers so far.
func (l *Load) Tally() *Tally {
	sum := &Tally{Closed: map[int]int{}}
	for _, w := range l.workers {
		w.mu.Lock()
		sum.merge(&w.receiver.tally)
		w.mu.Unlock()
	}
	return sum
}

// Refused returns the number of refused upgrades by status; 0 is a connection that could not be
// opened.
func (l *Load) Refused() map[int]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[int]uint64, len(l.refusals))
	for status, n := range l.refusals {
		counts[status] = n
	}
	return counts
}

// Outstanding returns the number of events that reading subscribers have still to receive of the
// published ones, counted per stream; gaps are not included.
func (l *Load) Outstanding(published []uint64) (n uint64) {
	for _, c := range l.bySlot {
		w := l.worker(c)
		w.mu.Lock()
		for i := range c.checks {
			n += c.checks[i].missingAtEnd(published[c.group.First+i])
		}
		w.mu.Unlock()
	}
	return n
}

func (l *Load) addError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workerErrs = errors.Join(l.workerErrs, err)
}

// Close closes all connections and waits for all goroutines. It returns the errors of the
// workers.
func (l *Load) Close() error {
	l.cancel()
	for _, w := range l.workers {
		w.stop()
	}

	l.running.Wait()
	for _, w := range l.workers {
		w.poll.close()
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	return l.workerErrs
}
