// Package stats has the commands on the figures of queues and agents.
package stats

import (
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// Command returns the command stats with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("stats", "The figures of queues and agents", statsRebuild(p))
}

func statsRebuild(p *cli.Program) *cobra.Command {
	var from string
	command := &cobra.Command{
		Use:   "rebuild",
		Short: "Recompute the figures from the events in Kafka",
		Long: `Recompute the figures from the events on cc.evt, and replace those that differ, in servers with
the role stats, which continue meanwhile. Figures of intervals that began before --from, or whose
events Kafka no longer holds, stay as they are. The command shows the progress; if it is interrupted,
the servers continue; run it again to see the progress.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var start time.Time
			if from != "" {
				var err error
				start, err = cli.ParseTime("from", from, time.Now())
				if err != nil {
					return err
				}
			}

			return rebuild(p, cmd.Context(), start)
		},
	}

	command.Flags().StringVar(&from, "from", "",
		"only intervals that begin at this time or later: a duration before now, a time, or Unix seconds")
	return command
}
