package aisession

import (
	"context"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

const (
	leaseTTL     = 60 * time.Second // life of a session's lease after its last renewal
	leaseRenewal = 15 * time.Second
	leaseTimeout = time.Second // timeout of a Redis command
)

// acquireLease counts a session against its account's limit. The error is fault.Limited above the
// limit. While Redis is unavailable the limit is not enforced, so that calls are still connected.
func (s *Service) acquireLease(ctx context.Context, session *Session) error {
	if s.settings.MaxPerAccount == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()

	ok, err := s.deps.Leases.Acquire(ctx, session.request.Provider.AccountID, session.sessionID,
		s.settings.MaxPerAccount)
	if err != nil {
		session.log.WarnContext(ctx, "AI session limit check failed; session admitted", "error", err)
		return nil
	}

	if !ok {
		s.metrics.refused.WithLabelValues(refusedAccount).Inc()
		return fault.Limited(time.Second, "too many AI sessions of this account")
	}

	return nil
}

func (s *Service) releaseLease(session *Session) {
	if s.settings.MaxPerAccount == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTimeout)
	defer cancel()
	if err := s.deps.Leases.Release(ctx, session.request.Provider.AccountID, session.sessionID); err != nil {
		session.log.WarnContext(ctx, "AI session lease release failed; it will expire", "error", err)
	}
}

// runLeaseRenewal renews the leases of this node's sessions until ctx ends.
func (s *Service) runLeaseRenewal(ctx context.Context) {
	if s.settings.MaxPerAccount == 0 {
		return
	}
	for range retry.Ticks(ctx, leaseRenewal) {
		s.renewLeases(ctx)
	}
}

func (s *Service) renewLeases(ctx context.Context) {
	accountBySession := make(map[string]string)
	s.mu.Lock()
	for id, session := range s.sessions {
		accountBySession[id] = session.request.Provider.AccountID
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()

	err := s.deps.Leases.Renew(ctx, accountBySession)
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "renewing AI session leases failed", "error", err)
	}
}
