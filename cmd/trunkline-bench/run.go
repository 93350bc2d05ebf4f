package main

import (
	"context"
	"errors"
	"io"

	"trunkline/internal/cli"
)

// findings are the faults that a run reports.
type findings interface {
	write(w io.Writer) error // for people
	fault() error            // the faults of the server, or nil
}

// printReport prints a report, whatever has happened. err is what ended the run.
func (b *bench) printReport(r findings, err error) error {
	if b.asJSON {
		err = errors.Join(err, cli.JSONLine(b.p.Out, r))
	} else {
		err = errors.Join(err, r.write(b.p.Out))
	}
	if err == nil {
		err = r.fault()
	}
	return err
}

// unlessInterrupted is why a run was not begun.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted before anything was measured")
	}
	return err
}

// endings are cleanup functions of a run, called in reverse order.
type endings []func()

func (e *endings) add(end func()) { *e = append(*e, end) }

func (e *endings) run() {
	for i := len(*e) - 1; i >= 0; i-- {
		(*e)[i]()
	}
}

// runUntil runs work until the function it returns is called, which gives its
// error.
func runUntil(ctx context.Context, work func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}
