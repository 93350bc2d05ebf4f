package feed

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/app"
	"trunkline/cmd/internal/cli"
	"trunkline/ingest/feed"
)

func check(p *cli.Program) *cobra.Command {
	var wait time.Duration
	var asJSON bool
	command := &cobra.Command{
		Use:   "check NAME",
		Short: "Connect to a feed's platform, and show the subscription, the state and one event",
		Args:  cli.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.WithStores(cmd.Context(), func(stores cli.Stores) error {
				index := slices.IndexFunc(stores.Settings.Feeds, func(c feed.Config) bool { return c.Name == args[0] })
				if index < 0 {
					return cli.Usagef("there is no feed %q in the settings", args[0])
				}

				cfg := stores.Settings.Feeds[index]
				fmt.Fprintf(p.Err, "connecting to %s, then waiting up to %v for an event\n", cfg.Name, wait)
				result, err := app.CheckFeed(cmd.Context(), stores.Identity.Directory, cfg, wait, p.ToolLog())
				if err != nil {
					return err
				}

				if asJSON {
					if err := cli.JSONLine(p.Out, result); err != nil {
						return err
					}
				} else {
					printResult(p.Out, cfg.Name, result, wait)
				}

				return problemsError(result)
			})
		},
	}

	command.Flags().DurationVar(&wait, "wait", 15*time.Second,
		"how long to wait for the connection, and then for an event")
	command.Flags().BoolVar(&asJSON, "json", false, "one JSON object, as POST /api/v2/feeds/NAME/check responds")

	return command
}

func printResult(out io.Writer, name string, r *feed.CheckResult, wait time.Duration) {
	if !r.Connected {
		return
	}

	fmt.Fprintf(out, "%s: connected and logged in\n", name)
	fmt.Fprintf(out, "subscription: %s\n", strings.Join(r.Subscription, ", "))
	if r.State == nil {
		return
	}

	fmt.Fprintf(out, "state: %d agents, %d calls, %d devices\n", r.State.Agents, r.State.Calls, r.State.Devices)
	for _, note := range r.State.Notes {
		fmt.Fprintln(out, "note: "+note)
	}

	switch e := r.Event; {
	case e != nil && e.Account == "":
		fmt.Fprintf(out,
			"first event: format %s, account unknown, of %q: set accounts: [{match: …, account: …}] or account\n%s\n",
			e.Format, e.Names, e.Value)
	case e != nil:
		fmt.Fprintf(out, "first event: format %s, account %s\n%s\n", e.Format, e.Account, e.Value)
	case r.OK:
		fmt.Fprintf(out, "no event within %v: make a call, or change an agent's status\n", wait)
	}
}

// problemsError returns the problems of a check and their advice as an error, nil if there are none.
func problemsError(r *feed.CheckResult) (err error) {
	for _, problem := range r.Problems {
		text := problem.Message
		if problem.Advice != "" {
			text += "\n" + problem.Advice
		}
		err = errors.Join(err, errors.New(text))
	}
	return err
}
