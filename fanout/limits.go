package fanout

import (
	"cmp"
	"context"
	"slices"
	"time"

	"trunkline/internal/addressprefix"
	"trunkline/internal/fault"
)

// Limits counts the open connections of the cluster by leases. Leases expire unless
// they are renewed, which frees those of a node that has crashed.
type Limits interface {
	// Acquire acquires the lease in every scope or in none. It returns the kind of the
	// first full scope; with replace, it evicts the oldest connections instead.
	Acquire(ctx context.Context, node string, lease ConnectionLease, replace bool) (fullScope string, err error)
	// Renew renews the leases of a node's connections and returns the ids of its
	// connections that were evicted since the last call.
	Renew(ctx context.Context, node string, leases []ConnectionLease) (evicted []string, err error)
	// Release releases leases.
	Release(ctx context.Context, node string, leases []ConnectionLease) error
}

// ConnectionLease is the lease of one connection in its scopes.
type ConnectionLease struct {
	ID     string
	Since  time.Time
	Scopes []Scope
}

// Scope is an account, user or address with a connection limit.
type Scope struct {
	Name string // "account:…", "user:…" or "address:…"
	Max  int
}

// scopes returns the scopes of a subscriber that have a limit. IPv6 addresses are
// counted by /64 and by /56.
func (c Config) scopes(account, user, address string) []Scope {
	var scopes []Scope
	from := addressprefix.Of(address)
	for _, s := range []Scope{
		{"account:" + account, c.MaxConnectionsPerAccount},
		{"user:" + user, c.MaxConnectionsPerUser},
		{"address:" + from.Host, c.MaxConnectionsPerAddress},
		{"address:" + from.Site, addressprefix.SiteFactor * c.MaxConnectionsPerAddress},
	} {
		if s.Max > 0 && s.Name != "address:" {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// newConnectionLease returns the lease of a subscriber; it has no scopes when no limits
// are set.
func (f *Fanout) newConnectionLease(s *subscriber) ConnectionLease {
	p := s.principal
	return ConnectionLease{ID: s.id, Since: s.connected,
		Scopes: f.cfg.scopes(p.AccountID, cmp.Or(p.UserID, p.KeyID), s.address)}
}

// acquireLease applies the connection limits. It returns fault.KindLimited when a
// limit is reached. While Redis is unavailable, limits are not applied.
func (f *Fanout) acquireLease(ctx context.Context, s *subscriber) error {
	lease := f.newConnectionLease(s)
	if len(lease.Scopes) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	fullScope, err := f.limits.Acquire(ctx, f.cfg.NodeID, lease, f.cfg.OnLimit == replaceOldest)
	if err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
		return nil
	}
	if fullScope != "" {
		return fault.Limited(f.cfg.PingInterval, "too many connections of this "+fullScope)
	}
	return nil
}

func (f *Fanout) limited() bool {
	return f.cfg.MaxConnectionsPerAccount+f.cfg.MaxConnectionsPerUser+f.cfg.MaxConnectionsPerAddress > 0
}

// releaseLeases releases the leases of subscribers that have been removed.
func (f *Fanout) releaseLeases(ctx context.Context, left []*subscriber) {
	if !f.limited() || len(left) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	if err := f.limits.Release(ctx, f.cfg.NodeID, f.connectionLeases(left)); err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// renewLeases disconnects the subscribers that were evicted and, with renew,
// renews the leases of the others.
func (f *Fanout) renewLeases(ctx context.Context, renew bool) {
	if !f.limited() {
		return
	}
	here := f.members.all()
	if len(here) == 0 && !renew {
		return // nobody to disconnect
	}

	var leases []ConnectionLease
	if renew {
		leases = f.connectionLeases(here)
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	evicted, err := f.limits.Renew(ctx, f.cfg.NodeID, leases)
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

func (f *Fanout) connectionLeases(subscribers []*subscriber) []ConnectionLease {
	leases := make([]ConnectionLease, len(subscribers))
	for i, s := range subscribers {
		leases[i] = f.newConnectionLease(s)
	}
	return leases
}
