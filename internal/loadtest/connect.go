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

// Connect opens all connections at the configured rate and returns when all are open. It returns
// an error if the server refuses one permanently, if ctx ends, or if a connection fails after
// several attempts.
func (l *Load) Connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	var opening sync.WaitGroup
	for i, c := range l.conns {
		if l.cfg.Ramp > 0 {
			SleepUntil(ctx, began.Add(time.Duration(float64(i)/l.cfg.Ramp*float64(time.Second))))
		}
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			opening.Wait()
			return context.Cause(ctx)
		}
		opening.Go(func() {
			defer func() { <-l.slots }()
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
func (l *Load) connectWithRetries(ctx context.Context, c *conn) error {
	for try := 1; ; try++ {
		err := l.open(ctx, c)
		switch {
		case err == nil || ctx.Err() != nil || final(err) || errors.Is(err, syscall.ECONNREFUSED):
			return err
		case try == maxAttempts:
			return fmt.Errorf("after %d tries: %w", try, err)
		}
		pause := time.Duration(rand.Int64N(int64(100*time.Millisecond) << min(try, 5)))
		if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
			pause = max(pause, refusal.After)
		}
		SleepUntil(ctx, time.Now().Add(pause))
	}
}

// final marks an error that a retry cannot resolve.
func final(err error) bool {
	var refusal *Refusal
	var distrust *tls.CertificateVerificationError
	return errors.As(err, &refusal) && refusal.Status < 500 && refusal.Status != http.StatusTooManyRequests ||
		errors.As(err, &distrust)
}

// open makes one attempt.
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
	l.refusals[status]++
}

// ended handles a connection that the server has ended.
func (l *Load) ended(c *conn, code int) {
	if l.cfg.Resume == Never || c.stalled || l.ctx.Err() != nil || !mayReconnect(code) {
		return
	}
	l.running.Go(func() { l.reconnect(c) })
}

// mayReconnect reports whether a client may reconnect after a close code (contract, section C).
func mayReconnect(code int) bool {
	switch code {
	case 1008, codeProtocol, 4001, 4003, 4009:
		return false
	}
	return true
}

// reconnect resumes, without a limit of attempts.
func (l *Load) reconnect(c *conn) {
	for l.ctx.Err() == nil {
		SleepUntil(l.ctx, time.Now().Add(time.Duration(rand.Int64N(int64(l.cfg.Pause)))))
		select {
		case l.slots <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		err := l.connectWithRetries(l.ctx, c)
		<-l.slots
		if err == nil || final(err) {
			return // resumed, or ctx has ended: missing events count as lost
		}
	}
}
