package feed

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/ingest/feed"
	"trunkline/internal/setting"
)

func list(p *cli.Program) *cobra.Command {
	command := &cobra.Command{Use: "list", Short: "List the feeds with their state on each node", Args: cli.ExactArgs()}
	asJSON := cli.JSONListFlag(command.Flags())
	command.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.WithStores(cmd.Context(), func(stores cli.Stores) error {
			store, err := feed.NewStore(cmd.Context(), stores.DB)
			if err != nil {
				return err
			}

			statuses, err := store.List(cmd.Context())
			if err != nil {
				return err
			}

			header := []string{"FEED", "KIND", "NODE", "STATE", "CONNECTED", "LAST EVENT", "EVENTS", "SPOOL", "UNSENT",
				"HOLES", "RESYNCED", "DROPPED", "ERROR"}
			now := time.Now()

			return cli.List(p.Out, *asJSON, statuses, header,
				func(s feed.Status) []string { return statusCells(s, now) })
		})
	}

	return command
}

func statusCells(s feed.Status, now time.Time) []string {
	ago := func(seconds int64) string {
		if seconds == 0 {
			return "-"
		}
		return setting.FormatDuration(max(0, now.Sub(time.Unix(seconds, 0)).Round(time.Second)))
	}

	return []string{
		s.Name, s.Kind, s.Node, string(s.State), ago(s.ConnectedAt), ago(s.LastEventAt),
		strconv.FormatUint(s.Events, 10),
		setting.Bytes(s.SpoolBytes).String(), fmt.Sprintf("%.1fs", s.OldestUnsentSeconds),
		strconv.FormatUint(s.Holes, 10),
		strconv.FormatUint(s.ResyncDifferences, 10), strconv.FormatUint(s.Dropped, 10),
		cli.OrDash(cli.Printable(s.Error)),
	}
}
