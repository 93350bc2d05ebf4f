package fanout

import (
	"cmp"
	"context"
	"slices"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/limitprefix"
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
	from := limitprefix.Of(address)
	for _, s := range []Scope{
		{"account:" + account, c.MaxConnectionsPerAccount},
		{"user:" + user, c.MaxConnectionsPerUser},
		{"address:" + from.Host, c.MaxConnectionsPerAddress},
		{"address:" + from.Site, limitprefix.SiteFactor * c.MaxConnectionsPerAddress},
	} {
		// An IPv4 address has no site.
		if s.Max > 0 && s.Name != "address:" {
			scopes = append(scopes, s)
		}
	}

	return scopes
}

// connectionLimiter applies the connection limits to the subscribers of this node.
type connectionLimiter struct {
	cfg     Config
	limits  Limits // may be nil when the settings limit nothing
	metrics *metrics
}

// leaseOf returns the lease of a subscriber; it has no scopes when no limits are set.
func (l *connectionLimiter) leaseOf(s *subscriber) ConnectionLease {
	p := s.principal
	return ConnectionLease{ID: s.id, Since: s.connectedAt,
		Scopes: l.cfg.scopes(p.AccountID, cmp.Or(p.UserID, p.KeyID), s.address)}
}

// acquireLease applies the connection limits to a new subscriber. It returns fault.KindLimited
// when a limit is reached. While Redis is unavailable, limits are not applied.
func (l *connectionLimiter) acquireLease(ctx context.Context, s *subscriber) error {
	lease := l.leaseOf(s)
	if len(lease.Scopes) == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()

	fullScope, err := l.limits.Acquire(ctx, l.cfg.NodeID, lease, l.cfg.OnLimit == replaceOldest)
	if err != nil {
		l.metrics.presence.WithLabelValues("failed").Inc()
		return nil
	}

	if fullScope != "" {
		return fault.Limited(l.cfg.PingInterval, "too many connections of this "+fullScope)
	}

	return nil
}

// hasLimits reports whether the settings limit anything.
func (l *connectionLimiter) hasLimits() bool {
	return l.cfg.MaxConnectionsPerAccount+l.cfg.MaxConnectionsPerUser+l.cfg.MaxConnectionsPerAddress > 0
}

// releaseLeases releases the leases of subscribers that have been removed.
func (l *connectionLimiter) releaseLeases(ctx context.Context, removed []*subscriber) {
	if !l.hasLimits() || len(removed) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	if err := l.limits.Release(ctx, l.cfg.NodeID, l.leasesOf(removed)); err != nil {
		l.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// renewLeases renews the leases of the connected subscribers, unless it is asked only for those that were
// evicted, and returns the evicted ones.
func (l *connectionLimiter) renewLeases(ctx context.Context, connected []*subscriber,
	evictedOnly bool) (evicted []*subscriber) {
	if !l.hasLimits() || len(connected) == 0 && evictedOnly {
		return nil
	}

	var renewed []ConnectionLease
	if !evictedOnly {
		renewed = l.leasesOf(connected)
	}

	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()

	ids, err := l.limits.Renew(ctx, l.cfg.NodeID, renewed)
	if err != nil {
		l.metrics.presence.WithLabelValues("failed").Inc()
		return nil
	}

	for _, s := range connected {
		if slices.Contains(ids, s.id) {
			evicted = append(evicted, s)
		}
	}

	return evicted
}

func (l *connectionLimiter) leasesOf(subscribers []*subscriber) []ConnectionLease {
	all := make([]ConnectionLease, len(subscribers))
	for i, s := range subscribers {
		all[i] = l.leaseOf(s)
	}
	return all
}
