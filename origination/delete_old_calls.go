package origination

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

const purgeInterval = 10 * time.Minute

// runPurge deletes old calls, keys and leases until ctx ends. It has its own goroutine because it may
// take longer than a lease.
func (s *Service) runPurge(ctx context.Context) {
	for now := range retry.Ticks(ctx, purgeInterval) {
		s.calls.expireEarly(now)
		err := s.rows.deleteOld(ctx, now.Add(-s.cfg.Retention))
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "deleting old calls failed, will retry", "error", err)
		}
	}
}
