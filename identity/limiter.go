package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Limit is the number of failures allowed for one subject within a window that
// begins with the first.
type Limit struct {
	Subject string // says nothing about whom it is: it is a hash
	Max     int
	Window  time.Duration
}

// Limiter counts failures. Both methods return the time to wait before the next
// attempt, at the limit that is worst: 0 when it may be made now.
type Limiter interface {
	// Wait counts nothing. It answers a wait when a limit is used up.
	Wait(ctx context.Context, limits ...Limit) time.Duration
	// Fail counts a failure against each limit. It answers a wait when the
	// failure was one more than allowed.
	Fail(ctx context.Context, limits ...Limit) time.Duration
}

const (
	failuresPerUser    = 10
	failuresPerAddress = 100
	failureWindow      = 5 * time.Minute
)

// limits are those of failed logins: per user as given, known or not, and per
// address.
func (c Credentials) limits() []Limit {
	user := strings.ToLower(c.Domain) + "\x00" + strings.ToLower(c.Username)
	limits := []Limit{{subject("user", user), failuresPerUser, failureWindow}}
	if network := networkOf(c.Address); network != "" {
		limits = append(limits, Limit{subject("address", network), failuresPerAddress, failureWindow})
	}
	return limits
}

func subject(kind, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + name))
	return hex.EncodeToString(sum[:16])
}

// networkOf returns the addresses of one client: an IPv4 address, or the /64 of
// an IPv6 one, in which it chooses freely.
func networkOf(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}

// maxSubjects bounds the memory of a MemoryLimiter to some 10 MB.
const (
	maxSubjects   = 100_000
	evictionTries = 16
)

// MemoryLimiter counts in this process alone: for management commands, and
// while Redis is away.
type MemoryLimiter struct {
	now func() time.Time

	mu     sync.Mutex
	counts map[string]count
}

type count struct {
	failures int
	ends     time.Time
}

// NewMemoryLimiter makes one that has counted nothing.
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

// makeRoom forgets one subject when the memory is full: one whose window is
// over if a few tries find it, else any.
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
