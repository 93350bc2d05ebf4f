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
	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

func cdrReindex(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "reindex",
		Short: "Rewrite the rows of all call records in Kafka",
		Long: "Rewrite the rows of all call records on the topic cdr, with or without a running server.\n" +
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
	db, err := backend.OpenExistingDatabase(ctx, s, p.ToolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	index, err := cdrindex.New(ctx, s.CDR, db, prometheus.NewRegistry(), p.ToolLog())
	if err != nil {
		return err
	}

	var progress cdrindex.Progress
	switch _, err = cluster.Partitions(ctx, event.TopicCDR); {
	case err == nil:
		progress, err = index.Reindex(ctx, kafka.NewLog(cluster), progressPrinter(p))
	case fault.KindOf(err) == fault.KindNotFound: // no server has run yet
		err = nil
	}

	if err != nil {
		return fmt.Errorf("after %d of %d records: %w", progress.Done, progress.Total, err)
	}

	_, err = fmt.Fprintf(p.Out, "%d records read, %d rows written, %d records were no call record\n", progress.Done,
		progress.Rows, progress.Invalid)
	return err
}

// progressPrinter prints the progress, once a second.
func progressPrinter(p *cli.Program) func(cdrindex.Progress) {
	const interval = time.Second

	began := time.Now()
	printed := began
	return func(progress cdrindex.Progress) {
		if time.Since(printed) < interval {
			return
		}

		printed = time.Now()
		fmt.Fprintf(p.Err, "trunkline: partition %d of %d, %d of %d records (%d%%), %.0f a second\n",
			progress.Partition+1, progress.Partitions, progress.Done, progress.Total, 100*progress.Done/progress.Total,
			float64(progress.Done)/time.Since(began).Seconds())
	}
}
