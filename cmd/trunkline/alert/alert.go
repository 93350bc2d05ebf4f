// Package alert has the command that lists alerts, as the user of the saved login.
package alert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/internal/report"
	"trunkline/stats/figures"
)

// Command returns the command alert with its subcommand.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("alert", "The alerts of queues, agents and feeds", list(p))
}

func list(p *cli.Program) *cobra.Command {
	var since string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the alerts that are active or, with --since, all that have begun since",
		Args:  cli.ExactArgs(),
	}
	command.Flags().StringVar(&since, "since", "",
		"also ended ones that began since: a duration such as 12h or 3d, or a time")

	asJSON := cli.JSONListFlag(command.Flags())
	return savedlogin.WithAccount(p, command, func(cmd *cobra.Command, s *savedlogin.Session, _ []string) error {
		query := url.Values{"page_size": {strconv.Itoa(report.MaxPage)}}
		if since != "" {
			now := time.Now()
			from, err := cli.ParseTime("since", since, now)
			if err != nil {
				return err
			}

			query.Set("state", figures.AlertsAll)
			query.Set("startDate", strconv.FormatInt(from.Unix(), 10))
			query.Set("endDate", strconv.FormatInt(now.Unix(), 10))
		}

		var alerts []figures.Alert
		for {
			_, answer, err := s.Do(cmd.Context(),
				savedlogin.Request{Method: http.MethodGet, Path: "/api/v2/alerts?" + query.Encode(),
					WantStatus: http.StatusOK})
			if err != nil {
				return fmt.Errorf("listing the alerts: %w", err)
			}

			var page figures.AlertPage
			if err := json.Unmarshal(answer, &page); err != nil {
				return fmt.Errorf("reading the alerts: %w", err)
			}

			alerts = append(alerts, page.Data...)
			if page.NextStartKey == "" {
				break
			}

			query.Set("start_key", page.NextStartKey)
		}

		return cli.List(p.Out, *asJSON, alerts, []string{"SINCE", "ALERT", "ABOUT", "METRIC", "VALUE", "ENDED"}, cells)
	})
}

func cells(a figures.Alert) []string {
	about := cmp.Or(a.QueueID, a.AgentID, a.Feed)
	return []string{
		formatTime(a.StartedAt), cli.Printable(a.Name), cli.OrDash(cli.Printable(about)),
		cli.Printable(string(a.Metric)),
		strconv.FormatFloat(a.Value, 'f', -1, 64), formatTime(a.EndedAt),
	}
}

// formatTime returns the local time of Unix seconds; "-" for none.
func formatTime(seconds json.Number) string {
	at, err := seconds.Float64()
	if err != nil || at == 0 {
		return "-"
	}
	return time.Unix(int64(at), 0).Format("2006-01-02 15:04:05")
}
