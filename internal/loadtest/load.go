package loadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Load is many subscribers on one server.
type Load struct {
	cfg     Config
	target  *target
	workers []*worker
	conns   []*conn

	ctx     context.Context // ends when the load does
	cancel  context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{} // held while a connection is being opened

	mu       sync.Mutex
	failed   error          // of a worker
	refusals map[int]uint64 // upgrades refused, by status; 0: no connection
}

// New makes the subscribers; they connect in Connect.
func New(cfg Config) (*Load, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	cfg.setDefaults()
	target, err := newTarget(&cfg)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	l := &Load{cfg: cfg, target: target, slots: make(chan struct{}, cfg.Dialers), refusals: map[int]uint64{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for range cfg.Workers {
		r := receiver{clock: cfg.Clock, resume: cfg.Resume, stamps: newStampReader(cfg.Run)}
		w, err := newWorker(r, target.tls != nil, l.ended)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("load: %w", err)
		}
		l.workers = append(l.workers, w)
		l.running.Go(func() {
			if err := w.run(); err != nil {
				l.fail(err)
			}
		})
	}
	l.populate()
	return l, nil
}

// populate makes the subscribers of all groups. The stalled ones are spread
// evenly over them.
func (l *Load) populate() {
	for i := range l.cfg.Groups {
		g := &l.cfg.Groups[i]
		for range g.Sockets {
			slot := len(l.conns)
			c := &conn{slot: slot, group: g, fd: -1,
				stalled: int(float64(slot+1)*l.cfg.Stalled) > int(float64(slot)*l.cfg.Stalled)}
			if c.stalled {
				l.worker(c).r.tally.Stalled++
			} else {
				c.checks = make([]sequence, g.Streams)
			}
			l.conns = append(l.conns, c)
		}
	}
}

func (l *Load) worker(c *conn) *worker { return l.workers[c.slot%len(l.workers)] }

// Subscribers returns the number of subscribers, and of those that read.
func (l *Load) Subscribers() (all, reading int) {
	for _, c := range l.conns {
		if !c.stalled {
			reading++
		}
	}
	return len(l.conns), reading
}

// Tally returns the counts of the subscribers so far.
func (l *Load) Tally() *Tally {
	sum := &Tally{Closed: map[int]int{}}
	for _, w := range l.workers {
		w.mu.Lock()
		sum.add(&w.r.tally)
		w.mu.Unlock()
	}
	return sum
}

// Refused returns the number of refused upgrades, by status; 0 stands for
// connections that could not be made.
func (l *Load) Refused() map[int]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[int]uint64, len(l.refusals))
	for status, n := range l.refusals {
		counts[status] = n
	}
	return counts
}

// Outstanding returns the number of events that reading subscribers still miss of
// those that were published, counted per stream; gaps are not among them.
func (l *Load) Outstanding(published []uint64) (n uint64) {
	for _, c := range l.conns {
		w := l.worker(c)
		w.mu.Lock()
		for i := range c.checks {
			n += c.checks[i].tail(published[c.group.First+i])
		}
		w.mu.Unlock()
	}
	return n
}

func (l *Load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = errors.Join(l.failed, err)
}

// Close closes all connections and waits until nothing runs any more. It
// returns what went wrong on our side.
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
	return l.failed
}
