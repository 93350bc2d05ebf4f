package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

// Limit is the number of failures allowed for one subject within a window that
// begins with the first.
type Limit struct {
	Subject string // a hash, which reveals no username or address
	Max     int
	Window  time.Duration
}

// Limiter counts failures. Both methods return the time to wait before the next attempt,
// the longest of all limits: 0 if it is allowed now.
type Limiter interface {
	// Wait returns a wait if a limit is used up. It counts nothing.
	Wait(ctx context.Context, limits ...Limit) time.Duration
	// Fail counts a failure against each limit. It returns a wait if the failure exceeds a
	// limit.
	Fail(ctx context.Context, limits ...Limit) time.Duration
}

func subject(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return hex.EncodeToString(sum[:16])
}

// maxSubjects bounds the memory of a MemoryLimiter to some 10 MB.
const (
	maxSubjects   = 100_000
	evictionTries = 16
)

// MemoryLimiter counts in this process only: for management commands, and while Redis is
// unavailable.
type MemoryLimiter struct {
	now func() time.Time

	mu     sync.Mutex
	counts map[string]count
}

type count struct {
	failures int
	ends     time.Time
}

// NewMemoryLimiter returns a limiter without counts.
func NewMemoryLimiter() *MemoryLimiter {
	return &MemoryLimiter{now: time.Now, counts: make(map[string]count)}
}

// Wait implements Limiter.
func (l *MemoryLimiter) Wait(_ context.Context, limits ...Limit) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var wait time.Duration
	for _, limit := range limits {
		if c := l.counts[limit.Subject]; c.failures >= limit.Max {
			wait = max(wait, c.ends.Sub(now))
		}
	}
	return wait
}

// Fail implements Limiter.
func (l *MemoryLimiter) Fail(_ context.Context, limits ...Limit) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var wait time.Duration
	for _, limit := range limits {
		c := l.counts[limit.Subject]
		if !now.Before(c.ends) {
			l.makeRoom(now)
			c = count{ends: now.Add(limit.Window)}
		}
		c.failures++
		l.counts[limit.Subject] = c
		if c.failures > limit.Max {
			wait = max(wait, c.ends.Sub(now))
		}
	}
	return wait
}

// makeRoom deletes one subject if the memory is full: one with an ended window if a few
// tries find it, else any.
func (l *MemoryLimiter) makeRoom(now time.Time) {
	if len(l.counts) < maxSubjects {
		return
	}
	tries := evictionTries
	for subject, c := range l.counts { // in random order
		tries--
		if tries == 0 || !now.Before(c.ends) {
			delete(l.counts, subject)
			return
		}
	}
}
