package loadtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
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

	mu      sync.Mutex
	failed  error          // of a worker
	refused map[int]uint64 // upgrades refused, by status; 0: no connection
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
	l := &Load{cfg: cfg, target: target, slots: make(chan struct{}, cfg.Dialers), refused: map[int]uint64{}}
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

// Subscribers is how many there are, and how many of them read.
func (l *Load) Subscribers() (all, reading int) {
	for _, c := range l.conns {
		if !c.stalled {
			reading++
		}
	}
	return len(l.conns), reading
}

// Connect opens all connections at the configured pace and returns when all
// are open; an error when the server refuses one for good, ctx ends, or a
// connection cannot be had after several tries.
func (l *Load) Connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var opening sync.WaitGroup
	for i, c := range l.conns {
		if l.cfg.Ramp > 0 {
			sleepUntil(ctx, began.Add(time.Duration(float64(i)/l.cfg.Ramp*float64(time.Second))))
		}
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			opening.Wait()
			return context.Cause(ctx)
		}
		opening.Go(func() {
			defer func() { <-l.slots }()
			if err := l.insist(ctx, c); err != nil {
				cancel(err)
			}
		})
	}
	opening.Wait()
	return context.Cause(ctx)
}

// tries is how often a connection is tried before it is given up.
const tries = 8

// insist opens c's connection, with patience for a server that is busy.
func (l *Load) insist(ctx context.Context, c *conn) error {
	for try := 1; ; try++ {
		err := l.open(ctx, c)
		switch {
		case err == nil || ctx.Err() != nil || final(err) || errors.Is(err, syscall.ECONNREFUSED):
			return err
		case try == tries:
			return fmt.Errorf("after %d tries: %w", try, err)
		}
		pause := time.Duration(rand.Int64N(int64(100*time.Millisecond) << min(try, 5)))
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			pause = max(pause, refusal.After)
		}
		sleepUntil(ctx, time.Now().Add(pause))
	}
}

// final says that trying again will not help.
func final(err error) bool {
	var refusal *Refusal
	var distrust *tls.CertificateVerificationError
	return errors.As(err, &refusal) && refusal.Status < 500 && refusal.Status != http.StatusTooManyRequests ||
		errors.As(err, &distrust)
}

// open tries once.
func (l *Load) open(ctx context.Context, c *conn) error {
	var from netip.Addr
	if n := len(l.cfg.Sources); n > 0 {
		from = l.cfg.Sources[c.slot%n]
	}
	o, err := l.target.dial(ctx, from, c.group.Token, c.since)
	if err != nil {
		l.noteRefused(err)
		return err
	}
	return l.worker(c).adopt(c, o)
}

func (l *Load) noteRefused(err error) {
	if l.ctx.Err() != nil {
		return
	}
	status := 0
	var refusal *Refusal
	if errors.As(err, &refusal) {
		status = refusal.Status
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused[status]++
}

// ended is told of a connection that the server has ended.
func (l *Load) ended(c *conn, code int) {
	if l.cfg.Resume == Never || c.stalled || l.ctx.Err() != nil || !mayReturn(code) {
		return
	}
	l.running.Go(func() { l.comeBack(c) })
}

// mayReturn says whether a close code lets the client come back (contract,
// section C).
func mayReturn(code int) bool {
	switch code {
	case 1008, codeProtocol, 4001, 4003, 4009:
		return false
	}
	return true
}

// comeBack resumes, for as long as it takes.
func (l *Load) comeBack(c *conn) {
	for l.ctx.Err() == nil {
		sleepUntil(l.ctx, time.Now().Add(time.Duration(rand.Int64N(int64(l.cfg.Pause)))))
		select {
		case l.slots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		err := l.insist(l.ctx, c)
		<-l.slots
		if err == nil || final(err) {
			return // it is back, or what it has missed counts as lost
		}
	}
}

// Tally is what the subscribers have seen so far.
func (l *Load) Tally() *Tally {
	sum := &Tally{Closed: map[int]int{}}
	for _, w := range l.workers {
		w.mu.Lock()
		sum.add(&w.r.tally)
		w.mu.Unlock()
	}
	return sum
}

// Refused is how many upgrades were refused, by status; 0 stands for
// connections that could not be made.
func (l *Load) Refused() map[int]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := make(map[int]uint64, len(l.refused))
	for status, n := range l.refused {
		counts[status] = n
	}
	return counts
}

// Outstanding is how many events the reading subscribers have yet to get of
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
		w.release()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// sleepUntil waits, or until ctx ends.
func sleepUntil(ctx context.Context, t time.Time) {
	wait := time.Until(t)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
