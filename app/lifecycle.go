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
	log   *slog.Logger
	parts []part
}

// part is a component with a lifecycle: work that runs until stopped, a resource to
// close, or both. The name is for the log.
type part struct {
	name  string
	first bool                        // runs to its end before later parts start
	run   func(context.Context) error // nil: no work
	stop  func(context.Context) error // nil: run ends with its context
}

func newLifecycle(log *slog.Logger) *lifecycle { return &lifecycle{log: log} }

// runs registers work that ends with its context.
func (l *lifecycle) runs(name string, run func(context.Context) error) {
	l.parts = append(l.parts, part{name: name, run: run})
}

// runsAtOnce registers work that does not wait for earlier parts marked first.
func (l *lifecycle) runsAtOnce(name string, run func(context.Context) error) {
	l.parts = append(l.parts, part{name: name, run: run, stop: func(context.Context) error { return nil }})
}

// runsFirst registers work that must be done before later parts start.
func (l *lifecycle) runsFirst(name string, run func(context.Context) error) {
	l.parts = append(l.parts, part{name: name, run: run, first: true})
}

// closes registers a resource to close.
func (l *lifecycle) closes(name string, stop func(context.Context) error) {
	l.parts = append(l.parts, part{name: name, stop: stop})
}

// drains registers a step of the shutdown.
func (l *lifecycle) drains(name string, drain func(context.Context)) {
	l.closes(name, func(ctx context.Context) error { drain(ctx); return nil })
}

// server is a listener's work: serve until shut down.
type server interface {
	serve() error
	shutdown(context.Context) error
}

func (l *lifecycle) serves(name string, s server) {
	l.parts = append(l.parts, part{name: name,
		run:  func(context.Context) error { return s.serve() },
		stop: s.shutdown})
}

// run works until ctx ends or a part fails, then stops everything.
func (l *lifecycle) run(ctx context.Context, drain time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	type running struct {
		cancel context.CancelFunc
		done   chan struct{}
	}
	lives := make([]running, len(l.parts))
	gate := make(chan struct{}) // closed: earlier parts marked first are done
	close(gate)
	for i, p := range l.parts {
		if p.run == nil {
			continue
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		lives[i] = running{cancel, make(chan struct{})}
		before, after := gate, gate
		if p.first {
			after = make(chan struct{})
			gate = after
		}
		waits := p.stop == nil // listeners answer before topics exist, with 503 if necessary
		go func() {
			defer close(lives[i].done)
			if waits {
				select {
				case <-before:
				case <-own.Done():
					return
				}
			}
			if err := p.run(own); err != nil && own.Err() == nil {
				fail(fmt.Errorf("%s: %w", p.name, err))
				return
			}
			if p.first {
				close(after)
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
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	var late []error
	for i := len(l.parts) - 1; i >= 0; i-- {
		p := l.parts[i]
		if p.stop != nil {
			if err := p.stop(down); err != nil {
				late = append(late, fmt.Errorf("stopping %s: %w", p.name, err))
			}
		}
		if p.run == nil {
			continue
		}
		lives[i].cancel()
		select {
		case <-lives[i].done:
		case <-down.Done():
			late = append(late, fmt.Errorf("stopping %s: took longer than drain_timeout", p.name))
		}
	}
	return errors.Join(append(late, cause)...)
}

// stop closes the parts that New had opened before it failed.
func (l *lifecycle) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var failed []error
	for i := len(l.parts) - 1; i >= 0; i-- {
		if p := l.parts[i]; p.stop != nil {
			if err := p.stop(ctx); err != nil {
				failed = append(failed, fmt.Errorf("closing %s: %w", p.name, err))
			}
		}
	}
	return errors.Join(failed...)
}
