package main

import (
	"context"
	"errors"
	"io"

	"trunkline/cmd/internal/cli"
)

// runReport is the report of a run.
type runReport interface {
	write(w io.Writer) error // as text
	fault() error            // the faults of the server; nil: none
}

// printReport prints a report, also that of a failed run. err is the error that ended the run.
func (b *bench) printReport(r runReport, err error) error {
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

// unlessInterrupted returns err, or an error that reports the interrupt if ctx has ended.
func unlessInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted before anything was measured")
	}
	return err
}

// cleanups are the cleanup functions of a run, called in reverse order.
type cleanups []func()

func (e *cleanups) add(end func()) { *e = append(*e, end) }

func (e *cleanups) run() {
	for i := len(*e) - 1; i >= 0; i-- {
		(*e)[i]()
	}
}

// startUntil runs work until the returned function is called, which returns work's error.
func startUntil(ctx context.Context, work func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}
