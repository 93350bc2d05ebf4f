package deadletter

import (
	"strconv"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/ingest/deadletter"
)

func list(p *cli.Program) *cobra.Command {
	var filter deadletter.Filter
	var limit int
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the newest open dead letters in chronological order",
		Long: `List the newest open dead letters in chronological order: those that were
neither sent back nor discarded.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return cli.Usagef("--limit must be at least 1, is %d", limit)
			}

			return withLetters(cmd.Context(), p, func(letters *deadletter.Letters) error {
				found, err := letters.List(cmd.Context(), filter,
					deadletter.ListOptions{Limit: limit, WithPayload: asJSON})
				if err != nil {
					return err
				}

				if asJSON {
					return printJSON(p, found.Rows)
				}

				return printTable(p, found.Rows)
			})
		},
	}

	command.Flags().StringVar(&filter.Topic, "topic", "", "only those from this topic")
	command.Flags().StringVar(&filter.Kind, "kind", "", "only those of this kind of error")
	command.Flags().IntVar(&limit, "limit", 100, "maximum number of dead letters")
	command.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line, with value and headers")

	return command
}

func printJSON(p *cli.Program, rows []deadletter.Row) error {
	for _, row := range rows {
		if err := cli.JSONLine(p.Out, row); err != nil {
			return err
		}
	}
	return nil
}

func printTable(p *cli.Program, rows []deadletter.Row) error {
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = []string{
			row.Position, row.At.UTC().Format("2006-01-02T15:04:05.000Z"),
			cli.OrDash(cli.Printable(row.Topic)), cli.OrDash(cli.Printable(row.Kind)),
			cli.OrDash(cli.Printable(row.Reason)), strconv.Itoa(row.Size),
		}
	}
	return cli.Table(p.Out, []string{"POSITION", "TIME", "TOPIC", "KIND", "REASON", "SIZE"}, cells)
}
