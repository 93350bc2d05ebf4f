// Package cdr has the commands on call records.
package cdr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/config/settings"
	"trunkline/event"
	"trunkline/internal/cli"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

func Command(p *cli.Program) *cobra.Command {
	return cli.Group("cdr", "The call records", cdrFind(p), cdrExport(p), cdrImport(p), cdrReindex(p))
}

func cdrReindex(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "reindex",
		Short: "Write the rows of all call records that Kafka holds again",
		Long: "Write the rows of all call records that the topic cdr holds again, beside a running server or without one.\n" +
			"Reports and indexers continue meanwhile. Rows of calls that the topic no longer holds stay as they are.",
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.WithKafka(cmd.Context(), func(s *settings.Settings, cluster *kafka.Cluster) error {
				return reindex(p, cmd.Context(), s, cluster)
			})
		},
	}
}

func reindex(p *cli.Program, ctx context.Context, s *settings.Settings, cluster *kafka.Cluster) (err error) {
	db, err := backend.ExistingDatabase(ctx, s, p.ToolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	index, err := cdrindex.New(ctx, s.CDR, db, prometheus.NewRegistry(), p.ToolLog())
	if err != nil {
		return err
	}
	var done cdrindex.Progress
	switch _, err = cluster.Partitions(ctx, event.TopicCDR); {
	case err == nil:
		done, err = index.Reindex(ctx, cdrindex.NewKafkaTopic(cluster), showProgress(p))
	case fault.KindOf(err) == fault.KindNotFound: // no server has run yet
		err = nil
	}
	if err != nil {
		return fmt.Errorf("after %d of %d records: %w", done.Done, done.Total, err)
	}
	_, err = fmt.Fprintf(p.Out, "%d records read, %d rows written, %d records were no call record\n", done.Done, done.Rows, done.Invalid)
	return err
}

// showProgress prints the progress, once a second.
func showProgress(p *cli.Program) func(cdrindex.Progress) {
	const every = time.Second
	began := time.Now()
	printed := began
	return func(at cdrindex.Progress) {
		if time.Since(printed) < every {
			return
		}
		printed = time.Now()
		fmt.Fprintf(p.Err, "trunkline: partition %d of %d, %d of %d records (%d%%), %.0f a second\n",
			at.Partition+1, at.Partitions, at.Done, at.Total, 100*at.Done/at.Total, float64(at.Done)/time.Since(began).Seconds())
	}
}
