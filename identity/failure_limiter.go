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
// the longest of all limits, or 0 if it is allowed now.
type Limiter interface {
	// Wait returns the wait of the exhausted limits. It counts nothing.
	Wait(ctx context.Context, limits ...Limit) time.Duration
	// Fail counts a failure against each limit. It returns the wait of the limits that the
	// failure exceeds.
	Fail(ctx context.Context, limits ...Limit) time.Duration
}

func subjectHash(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return hex.EncodeToString(sum[:16])
}

const (
	maxSubjects   = 100_000 // bounds the memory of a MemoryLimiter to some 10 MB
	evictionTries = 16      // subjects that evictOne examines
)

// MemoryLimiter counts in this process only: for management commands, and while Redis is
// unavailable.
type MemoryLimiter struct {
	now func() time.Time

	mu     sync.Mutex
	counts map[string]failureCount
}

type failureCount struct {
	failures  int
	windowEnd time.Time
}

// NewMemoryLimiter returns a limiter without counts.
func NewMemoryLimiter() *MemoryLimiter {
	return &MemoryLimiter{now: time.Now, counts: make(map[string]failureCount)}
}

// Wait implements Limiter.
func (l *MemoryLimiter) Wait(_ context.Context, limits ...Limit) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	now := l.now()
	var wait time.Duration
	for _, limit := range limits {
		c := l.counts[limit.Subject]
		if c.failures >= limit.Max {
			wait = max(wait, c.windowEnd.Sub(now))
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
		if !now.Before(c.windowEnd) {
			l.evictOne(now)
			c = failureCount{windowEnd: now.Add(limit.Window)}
		}

		c.failures++
		l.counts[limit.Subject] = c
		// The last failure that is allowed is answered as a failure; Wait refuses the next attempt.
		if c.failures > limit.Max {
			wait = max(wait, c.windowEnd.Sub(now))
		}
	}

	return wait
}

// evictOne deletes one subject if there are maxSubjects: one whose window has ended, or
// any if evictionTries subjects include none.
func (l *MemoryLimiter) evictOne(now time.Time) {
	if len(l.counts) < maxSubjects {
		return
	}

	tries := evictionTries
	for subject, c := range l.counts { // in random order
		tries--
		if tries == 0 || !now.Before(c.windowEnd) {
			delete(l.counts, subject)
			return
		}
	}
}
