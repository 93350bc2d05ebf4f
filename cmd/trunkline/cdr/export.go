package cdr

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/internal/atomicfile"
)

func cdrExport(p *cli.Program) *cobra.Command {
	var q searchFlags
	var output string
	command := savedlogin.WithAccount(p, &cobra.Command{
		Use:   "export",
		Short: "Write the call records of a time range as CSV",
		Long: `Write the call records of a time range as CSV, as the user of trunkline login: a
header row, then a row for each record, newest first.

With --output the file is written atomically: it appears when it is complete.`,
		Args: cli.ExactArgs(),
	}, func(cmd *cobra.Command, s *savedlogin.Session, _ []string) error {
		values, err := q.query(time.Now())
		if err != nil {
			return err
		}

		write := func(w io.Writer) error { return export(cmd.Context(), p, s, reportsPath+"?"+values.Encode(), w) }
		if output == "" {
			return write(p.Out)
		}

		return atomicfile.Write(output, 0o600, write)
	})

	q.registerFlags(command, "30d")
	command.Flags().StringVar(&output, "output", "", "write to this file instead of stdout")
	return command
}

func export(ctx context.Context, p *cli.Program, s *savedlogin.Session, path string, w io.Writer) error {
	response, err := s.Stream(ctx, path, "text/csv")
	if err != nil {
		return fmt.Errorf("exporting call records: %w", err)
	}
	defer response.Body.Close()

	n, err := io.Copy(io.MultiWriter(w, &progressWriter{p: p, reportedAt: time.Now()}), response.Body)
	if err != nil {
		return fmt.Errorf("exporting call records: stopped after %d bytes: %w", n, err)
	}

	return nil
}

// progressWriter counts bytes and prints the count on stderr once a second.
type progressWriter struct {
	p          *cli.Program
	written    int64
	reportedAt time.Time
}

func (w *progressWriter) Write(part []byte) (int, error) {
	w.written += int64(len(part))
	if time.Since(w.reportedAt) >= time.Second {
		w.reportedAt = time.Now()
		w.p.Printf("%.1f MiB", float64(w.written)/(1<<20))
	}
	return len(part), nil
}
