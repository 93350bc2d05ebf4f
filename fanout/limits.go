package fanout

import (
	"context"
	"slices"
	"time"

	"trunkline/internal/fault"
)

// Limits counts open connections over the whole cluster. A place that is taken
// must be renewed, so that those of a dead node become free by themselves.
type Limits interface {
	// Take takes one place in every scope, or none. When a scope is full it
	// names it; with replace, the oldest connections are sent away instead.
	Acquire(ctx context.Context, node string, s ConnectionLease, replace bool) (full string, err error)
	// Renew keeps the places of a node's connections, and returns those of them
	// that another node has sent away.
	Renew(ctx context.Context, node string, seats []ConnectionLease) (evicted []string, err error)
	// Free gives places back.
	Release(ctx context.Context, node string, seats []ConnectionLease) error
}

// Seat is one connection's places.
type ConnectionLease struct {
	ID     string
	Since  time.Time
	Scopes []Scope
}

// Scope is something whose connections are counted.
type Scope struct {
	Name string // "account:…", "user:…" or "address:…"
	Max  int
}

// scopes are what a subscriber counts in, as the settings have it.
func (c Config) scopes(account, user, address string) []Scope {
	var scopes []Scope
	for _, s := range []Scope{{"account:" + account, c.MaxPerAccount}, {"user:" + user, c.MaxPerUser}, {"address:" + address, c.MaxPerAddress}} {
		if s.Max > 0 {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// seat is a subscriber's places; without limits it has none.
func (f *Fanout) connectionLease(s *subscriber) ConnectionLease {
	p := s.principal
	return ConnectionLease{ID: s.id, Since: s.connected, Scopes: f.cfg.scopes(p.AccountID, p.UserID, s.address)}
}

// takeSeat applies the connection limits. While the shared view is away there
// are none: the token alone admits.
func (f *Fanout) acquireLease(ctx context.Context, s *subscriber) error {
	seat := f.connectionLease(s)
	if len(seat.Scopes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	full, err := f.limits.Acquire(ctx, f.cfg.NodeID, seat, f.cfg.ReplaceOldest)
	if err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
		return nil
	}
	if full != "" {
		return fault.Limited(f.cfg.PingInterval, "too many connections of this "+full)
	}
	return nil
}

func (f *Fanout) limited() bool {
	return f.cfg.MaxPerAccount+f.cfg.MaxPerUser+f.cfg.MaxPerAddress > 0
}

// freeSeats gives back the places of subscribers that have left.
func (f *Fanout) releaseLeases(ctx context.Context, left []*subscriber) {
	if !f.limited() || len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	if err := f.limits.Release(ctx, f.cfg.NodeID, f.connectionLeases(left)); err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// renewSeats closes the subscribers that a newer connection has replaced, and
// now and then keeps the places of the others.
func (f *Fanout) renewLeases(ctx context.Context, renew bool) {
	if !f.limited() {
		return
	}
	here := f.members.all()
	var seats []ConnectionLease
	if renew {
		seats = f.connectionLeases(here)
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	evicted, err := f.limits.Renew(ctx, f.cfg.NodeID, seats)
	if err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
		return
	}
	for _, s := range here {
		if slices.Contains(evicted, s.id) {
			f.disconnect(s, DisconnectReplaced)
		}
	}
}

func (f *Fanout) connectionLeases(of []*subscriber) []ConnectionLease {
	seats := make([]ConnectionLease, len(of))
	for i, s := range of {
		seats[i] = f.connectionLease(s)
	}
	return seats
}
