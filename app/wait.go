package app

import (
	"context"
	"time"
)

const (
	waitRetry = 2 * time.Second
	waitSay   = 30 * time.Second // one line in it while something is waited for
)

// await tries until there is no error, or one that waiting does not mend. The
// log says in one line what is waited for and what to look at, and again while
// it lasts; readiness says it too.
func (a *App) await(ctx context.Context, what, mend string, try func(context.Context) error, passes func(error) bool) error {
	var began, said time.Time
	for {
		err := try(ctx)
		if err == nil {
			if !began.IsZero() {
				a.log.Info(what+" is there", "after", time.Since(began).Round(time.Millisecond))
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !passes(err) {
			return err
		}
		now := time.Now()
		if began.IsZero() {
			began = now
		}
		a.health.wait(what)
		if said.IsZero() || now.Sub(said) >= waitSay {
			said = now
			a.log.Warn("waiting for "+what+": "+hint(err, mend), "error", oneLine(err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitRetry):
		}
	}
}
