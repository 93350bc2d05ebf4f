package load

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

// Connect opens all connections at the configured rate and returns when all are open. It returns
// an error if the server refuses one permanently, if ctx ends, or if a connection fails after
// several attempts.
func (l *Load) Connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	startedAt := time.Now()
	var opening sync.WaitGroup
	for i, c := range l.bySlot {
		if l.cfg.Ramp > 0 {
			SleepUntil(ctx, startedAt.Add(time.Duration(float64(i)/l.cfg.Ramp*float64(time.Second))))
		}

		select {
		case l.dialSlots <- struct{}{}:
		case <-ctx.Done():
			opening.Wait()
			return context.Cause(ctx)
		}

		opening.Go(func() {
			defer func() { <-l.dialSlots }()
			if err := l.connectWithRetries(ctx, c); err != nil {
				cancel(err)
			}
		})
	}

	opening.Wait()
	return context.Cause(ctx)
}

// maxAttempts is the maximum number of connection attempts.
const maxAttempts = 8

// connectWithRetries opens c's connection and retries while the server is busy.
func (l *Load) connectWithRetries(ctx context.Context, c *subscriber) error {
	for attempt := 1; ; attempt++ {
		err := l.open(ctx, c)
		switch {
		case err == nil || ctx.Err() != nil || isPermanent(err) || errors.Is(err, syscall.ECONNREFUSED):
			return err
		case attempt == maxAttempts:
			return fmt.Errorf("after %d tries: %w", attempt, err)
		}

		pause := time.Duration(rand.Int64N(int64(100*time.Millisecond) << min(attempt, 5)))
		var refusal *Refusal
		if errors.As(err, &refusal) {
			pause = max(pause, refusal.After)
		}

		SleepUntil(ctx, time.Now().Add(pause))
	}
}

// isPermanent reports whether a retry cannot succeed after err.
func isPermanent(err error) bool {
	var rejected *Refusal
	var certErr *tls.CertificateVerificationError
	return errors.As(err, &rejected) && rejected.Status < 500 && rejected.Status != http.StatusTooManyRequests ||
		errors.As(err, &certErr)
}

// open makes one attempt to connect.
func (l *Load) open(ctx context.Context, c *subscriber) error {
	var localAddr netip.Addr
	n := len(l.cfg.Sources)
	if n > 0 {
		localAddr = l.cfg.Sources[c.slot%n]
	}

	o, err := l.target.dial(ctx, localAddr, c.group, c.resumeFrom)
	if err != nil {
		l.countRefusal(err)
		return err
	}

	return l.worker(c).adopt(c, o)
}

func (l *Load) countRefusal(err error) {
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

	l.refusals[status]++
}

// handleDisconnect handles a connection that the server has ended.
func (l *Load) handleDisconnect(c *subscriber, code int) {
	if l.cfg.Resume == ResumeNever || c.stalled || l.ctx.Err() != nil || !mayReconnect(code) {
		return
	}
	l.running.Go(func() { l.reconnect(c) })
}

// mayReconnect reports whether a client may reconnect after a close code (docs/channel.md, How
// connections end).
func mayReconnect(code int) bool {
	switch code {
	case 1008, codeProtocol, 4001, 4003, 4009:
		return false
	}
	return true
}

// reconnect resumes, without a limit of attempts.
func (l *Load) reconnect(c *subscriber) {
	for l.ctx.Err() == nil {
		SleepUntil(l.ctx, time.Now().Add(time.Duration(rand.Int64N(int64(l.cfg.Pause)))))
		select {
		case l.dialSlots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}

		err := l.connectWithRetries(l.ctx, c)
		<-l.dialSlots
		if err == nil || isPermanent(err) {
			return // resumed, or ctx has ended: missing events count as lost
		}
	}
}
