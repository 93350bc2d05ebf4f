package app

import (
	"context"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/selfcheck"
)

const (
	awaitRetryInterval = 2 * time.Second
	awaitLogInterval   = 30 * time.Second // between log lines
)

// awaitBackend calls try until it succeeds or returns an error that is not temporary. While it
// waits, it logs the backend and the advice every awaitLogInterval, and readiness names the backend.
func (a *App) awaitBackend(ctx context.Context, backend, advice string, try func(context.Context) error,
	temporary func(error) bool) error {
	var began, reported time.Time
	for {
		err := try(ctx)
		if err == nil {
			if !began.IsZero() {
				a.log.Info(backend+" is available", "after", time.Since(began).Round(time.Millisecond))
			}
			return nil
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !temporary(err) {
			return err
		}

		now := time.Now()
		if began.IsZero() {
			began = now
		}

		a.health.setWaiting(backend)
		if reported.IsZero() || now.Sub(reported) >= awaitLogInterval {
			reported = now
			a.log.Warn("waiting for "+backend+": "+selfcheck.Advice(err, advice), "error", selfcheck.OneLine(err))
		}
		if !retry.Sleep(ctx, awaitRetryInterval) {
			return ctx.Err()
		}
	}
}
