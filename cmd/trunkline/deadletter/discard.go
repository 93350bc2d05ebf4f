package deadletter

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/ingest/deadletter"
)

func discard(p *cli.Program) *cobra.Command {
	var filter deadletter.Filter
	var all bool
	command := &cobra.Command{
		Use:   "discard [--topic T] [--kind K] (--all | POSITION…)",
		Short: "Discard dead letters",
		Long: `Discard dead letters: they are no longer listed, and retry --all leaves them out.
Kafka deletes them when their retention ends; until then retry POSITION sends
them back all the same.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			positions, err := parsePositions(all, args)
			if err != nil {
				return err
			}

			if !all && filter.Kind != "" {
				return cli.Usagef("--kind goes with --all")
			}

			return withLetters(cmd.Context(), p, func(letters *deadletter.Letters) error {
				discarded := len(positions)
				if all {
					discarded, err = letters.SettleOpen(cmd.Context(), deadletter.Discarded, filter)
				} else {
					err = letters.Settle(cmd.Context(), deadletter.Discarded, positions, filter, true)
				}

				if err != nil {
					return err
				}

				fmt.Fprintf(p.Out, "%d discarded\n", discarded)
				return nil
			})
		},
	}

	command.Flags().StringVar(&filter.Topic, "topic", "", "only those from this topic")
	command.Flags().StringVar(&filter.Kind, "kind", "", "only those of this kind of error")
	command.Flags().BoolVar(&all, "all", false, "all open dead letters")

	return command
}
