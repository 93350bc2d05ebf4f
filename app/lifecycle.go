package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// lifecycle runs the registered parts and stops them in reverse order, because later
// parts depend on earlier ones.
type lifecycle struct {
	log       *slog.Logger
	parts     []part
	firstDone chan struct{} // closed when the work of addRunFirst has ended
}

// part is a component with a lifecycle: work that runs until stopped, a resource to
// close, or both. The name is for the log.
type part struct {
	name string
	run  func(context.Context) error // nil: no work
	stop func(context.Context) error // nil: run ends with its context
}

func newLifecycle(log *slog.Logger) *lifecycle {
	return &lifecycle{log: log, firstDone: make(chan struct{})}
}

// addRun registers work that ends with its context. It starts when the work of addRunFirst has
// ended, whichever of the two was registered first.
func (l *lifecycle) addRun(name string, run func(context.Context) error) {
	l.addRunAtOnce(name, func(ctx context.Context) error {
		select {
		case <-l.firstDone:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	})
}

// addRunAtOnce registers work that ends with its context and does not wait for that of addRunFirst.
func (l *lifecycle) addRunAtOnce(name string, run func(context.Context) error) {
	l.parts = append(l.parts, part{name: name, run: run})
}

// addRunFirst registers the work that must end before that of addRun starts. It is called once.
func (l *lifecycle) addRunFirst(name string, run func(context.Context) error) {
	l.addRunAtOnce(name, func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return err
		}
		close(l.firstDone)
		return nil
	})
}

// addClose registers a resource to close.
func (l *lifecycle) addClose(name string, stop func(context.Context) error) {
	l.parts = append(l.parts, part{name: name, stop: stop})
}

// addDrain registers a step of the shutdown.
func (l *lifecycle) addDrain(name string, drain func(context.Context)) {
	l.addClose(name, func(ctx context.Context) error { drain(ctx); return nil })
}

// server is a listener's work: serve until shut down.
type server interface {
	serve() error
	shutdown(context.Context) error
}

// addServer registers a listener. It answers before the work of addRunFirst has ended, with 503 if
// necessary.
func (l *lifecycle) addServer(name string, s server) {
	l.parts = append(l.parts, part{name: name,
		run:  func(context.Context) error { return s.serve() },
		stop: s.shutdown})
}

// run works until ctx ends or a part fails, then stops everything.
func (l *lifecycle) run(ctx context.Context, drainTimeout time.Duration) error {
	ctx, cancelAll := context.WithCancelCause(ctx)
	defer cancelAll(nil)

	type running struct {
		cancel context.CancelFunc
		done   chan struct{}
	}
	started := make([]running, len(l.parts))

	for i, p := range l.parts {
		if p.run == nil {
			continue
		}

		// Not ended by ctx: each part works on until those that depend on it have stopped.
		partCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		started[i] = running{cancel, make(chan struct{})}
		go func() {
			defer close(started[i].done)
			err := p.run(partCtx)
			if err != nil && partCtx.Err() == nil {
				cancelAll(fmt.Errorf("%s: %w", p.name, err))
			}
		}()
	}

	<-ctx.Done()
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		cause = nil
		l.log.Info("stopping")
	} else {
		l.log.Error("stopping", "error", cause)
	}

	drainCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()

	var errs []error
	for i := len(l.parts) - 1; i >= 0; i-- {
		p := l.parts[i]
		if p.stop != nil {
			if err := p.stop(drainCtx); err != nil {
				errs = append(errs, fmt.Errorf("stopping %s: %w", p.name, err))
			}
		}

		if p.run == nil {
			continue
		}

		started[i].cancel()
		select {
		case <-started[i].done:
		case <-drainCtx.Done():
			errs = append(errs, fmt.Errorf("stopping %s: took longer than drain_timeout", p.name))
		}
	}

	return errors.Join(append(errs, cause)...)
}

// closeAll closes the parts that New opened before it failed.
func (l *lifecycle) closeAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	var errs []error
	for i := len(l.parts) - 1; i >= 0; i-- {
		p := l.parts[i]
		if p.stop != nil {
			if err := p.stop(ctx); err != nil {
				errs = append(errs, fmt.Errorf("closing %s: %w", p.name, err))
			}
		}
	}

	return errors.Join(errs...)
}
