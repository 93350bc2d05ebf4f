package app

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

func TestWorkWaitsForTheFirstWhereverItIsRegistered(t *testing.T) {
	l := newLifecycle(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())

	firstEnded := false
	finished := make(chan struct{}, 2)
	wait := func(name string) {
		l.addRun(name, func(ctx context.Context) error {
			if !firstEnded { // written before firstDone is closed
				t.Errorf("%s started before the first work had ended", name)
			}
			finished <- struct{}{}
			<-ctx.Done()
			return nil
		})
	}

	wait("earlier")
	started := make(chan struct{})
	l.addRunAtOnce("at once", func(context.Context) error { close(started); return nil })

	l.addRunFirst("first", func(context.Context) error {
		<-started
		firstEnded = true
		return nil
	})

	wait("later")
	go func() {
		<-finished
		<-finished
		cancel()
	}()

	if err := l.run(ctx, time.Minute); err != nil {
		t.Error(err)
	}
}
