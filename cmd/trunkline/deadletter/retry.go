package deadletter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/ingest/deadletter"
)

func retry(p *cli.Program) *cobra.Command {
	var topic string
	var all bool
	known := strings.Join(deadletter.Topics(), " or ")
	command := &cobra.Command{
		Use:   "retry [--topic T] (--all | POSITION…)",
		Short: "Send dead letters back to their original topics",
		Long: `Send dead letters back to their original topics.

With --all, send those that are open: neither sent back nor discarded. With
positions, as deadletter list shows them, send exactly those, even if they were
sent before. Events of feeds whose account was unknown get the account that the
feed's rules and the directory give them at the time of the retry.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			topics := deadletter.Topics()
			if topic != "" {
				if !slices.Contains(topics, topic) {
					return cli.Usagef("--topic is %s, not %q", known, topic)
				}
				topics = []string{topic}
			}

			positions, err := parsePositions(all, args)
			if err != nil {
				return err
			}

			return withLetters(cmd.Context(), p, func(letters *deadletter.Letters) error {
				sent := len(positions)
				if all {
					sent, err = letters.RetryAll(cmd.Context(), topics, func(topic string, partition, n int) {
						fmt.Fprintf(p.Err, "%s: %d sent back from partition %d\n", topic, n, partition)
					})
				} else {
					err = letters.Settle(cmd.Context(), deadletter.Retried, positions, deadletter.Filter{Topic: topic},
						true)
				}

				if err != nil {
					return err
				}

				fmt.Fprintf(p.Out, "%d sent back\n", sent)
				return nil
			})
		},
	}

	command.Flags().StringVar(&topic, "topic", "", "only those from this topic: "+known)
	command.Flags().BoolVar(&all, "all", false, "all open dead letters")
	return command
}
