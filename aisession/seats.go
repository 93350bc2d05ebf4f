package aisession

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

const (
	seatLife  = 60 * time.Second // a place outlives its last renewal
	seatRenew = 15 * time.Second
	seatLimit = time.Second // for Redis to answer
)

// takeSeat counts a session against its account's limit. While Redis is away
// there is none: calls matter more.
func (s *Service) takeSeat(ctx context.Context, session *Session) error {
	if s.cfg.MaxPerAccount == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, seatLimit)
	defer cancel()
	ok, err := s.deps.Seats.Take(ctx, session.request.Provider.AccountID, session.id, s.cfg.MaxPerAccount)
	if err != nil {
		session.log.WarnContext(ctx, "an AI session is not counted against its account's limit", "error", err)
		return nil
	}
	if !ok {
		s.metrics.refused.WithLabelValues(refusedAccount).Inc()
		return fault.Limited(time.Second, "too many AI sessions of this account")
	}
	return nil
}

func (s *Service) freeSeat(session *Session) {
	if s.cfg.MaxPerAccount == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), seatLimit)
	defer cancel()
	if err := s.deps.Seats.Free(ctx, session.request.Provider.AccountID, session.id); err != nil {
		session.log.WarnContext(ctx, "an AI session's place is freed only when it expires", "error", err)
	}
}

// keepSeats renews the places of this node's sessions until ctx ends.
func (s *Service) keepSeats(ctx context.Context) {
	if s.cfg.MaxPerAccount == 0 {
		return
	}
	ticker := time.NewTicker(seatRenew)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.renewSeats(ctx)
		}
	}
}

func (s *Service) renewSeats(ctx context.Context) {
	accounts := make(map[string]string)
	s.mu.Lock()
	for id, session := range s.sessions {
		accounts[id] = session.request.Provider.AccountID
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, seatLimit)
	defer cancel()
	if err := s.deps.Seats.Renew(ctx, accounts); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "AI sessions' places were not renewed", "error", err)
	}
}
