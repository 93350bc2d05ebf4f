package app

import (
	"context"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/selfcheck"
)

const (
	waitRetry  = 2 * time.Second
	waitReport = 30 * time.Second // between log lines
)

// await calls try until it succeeds or returns an error that is not temporary. While it
// waits, a log line every half minute names the backend and the advice, and readiness
// names the backend.
func (a *App) await(ctx context.Context, what, advice string, try func(context.Context) error, temporary func(error) bool) error {
	var began, reported time.Time
	for {
		err := try(ctx)
		if err == nil {
			if !began.IsZero() {
				a.log.Info(what+" is available", "after", time.Since(began).Round(time.Millisecond))
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
		a.health.wait(what)
		if reported.IsZero() || now.Sub(reported) >= waitReport {
			reported = now
			a.log.Warn("waiting for "+what+": "+selfcheck.Advice(err, advice), "error", selfcheck.OneLine(err))
		}
		if !retry.Sleep(ctx, waitRetry) {
			return ctx.Err()
		}
	}
}
