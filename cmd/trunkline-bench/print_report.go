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
