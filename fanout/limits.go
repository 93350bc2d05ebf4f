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
	Take(ctx context.Context, node string, s Seat, replace bool) (full string, err error)
	// Renew keeps the places of a node's connections, and returns those of them
	// that another node has sent away.
	Renew(ctx context.Context, node string, seats []Seat) (evicted []string, err error)
	// Free gives places back.
	Free(ctx context.Context, node string, seats []Seat) error
}

// Seat is one connection's places.
type Seat struct {
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
func (f *Fanout) seat(s *subscriber) Seat {
	p := s.principal
	return Seat{ID: s.id, Since: s.connected, Scopes: f.cfg.scopes(p.AccountID, p.UserID, s.address)}
}

// takeSeat applies the connection limits. While the shared view is away there
// are none: the token alone admits.
func (f *Fanout) takeSeat(ctx context.Context, s *subscriber) error {
	seat := f.seat(s)
	if len(seat.Scopes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	full, err := f.limits.Take(ctx, f.cfg.NodeID, seat, f.cfg.ReplaceOldest)
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
func (f *Fanout) freeSeats(ctx context.Context, left []*subscriber) {
	if !f.limited() || len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	if err := f.limits.Free(ctx, f.cfg.NodeID, f.seats(left)); err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// renewSeats closes the subscribers that a newer connection has replaced, and
// now and then keeps the places of the others.
func (f *Fanout) renewSeats(ctx context.Context, renew bool) {
	if !f.limited() {
		return
	}
	here := f.members.all()
	var seats []Seat
	if renew {
		seats = f.seats(here)
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

func (f *Fanout) seats(of []*subscriber) []Seat {
	seats := make([]Seat, len(of))
	for i, s := range of {
		seats[i] = f.seat(s)
	}
	return seats
}
