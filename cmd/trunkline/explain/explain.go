// Package explain has the command explain, which shows why an event reached, or did not reach,
// each client and webhook.
package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/event"
)

// explainFlags holds the flags of explain.
type explainFlags struct {
	client, user string
	all, asJSON  bool
}

// Command returns the command explain.
func Command(p *cli.Program) *cobra.Command {
	var r explainFlags
	command := &cobra.Command{
		Use:   "explain EVENT_ID",
		Short: "Show why an event did or did not reach each client and webhook",
		Long: `Show, as an administrator who is logged in with trunkline login, the source
of an event, and its outcome at each connection of the events channel on every node
and at each webhook. Connections whose user may not see the event's account
are counted, and listed with --client, --user or --all.

The exit code is 0 when the event was explained, 1 when there is no such event in
the log or the server did not answer.`,
		Args: cli.ExactArgs("EVENT_ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := event.ParseID(args[0])
			if err != nil {
				return cli.UsageError(err)
			}

			s, err := savedlogin.Open(p)
			if err != nil {
				return err
			}
			defer s.Close()

			return run(cmd.Context(), p, s, args[0], r)
		},
	}

	flags := command.Flags()
	flags.StringVar(&r.client, "client", "", "only the connection with this id")
	flags.StringVar(&r.user, "user", "", "only connections of this user (name or id) or API key (id)")
	flags.BoolVar(&r.all, "all", false, "list the connections that may not see the event's account too")
	flags.BoolVar(&r.asJSON, "json", false, "print the explanation as a JSON object on a line")

	return command
}

func run(ctx context.Context, p *cli.Program, s *savedlogin.Session, id string, r explainFlags) error {
	query := url.Values{}
	for name, value := range map[string]string{"client": r.client, "user": r.user} {
		if value != "" {
			query.Set(name, value)
		}
	}

	path := "/api/v2/events/" + id + "/explain"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	body, err := s.Call(ctx, http.MethodGet, path, http.StatusOK)
	if err != nil {
		return fmt.Errorf("explaining %s: %w", id, err)
	}

	if r.asJSON {
		return cli.JSONLine(p.Out, json.RawMessage(body))
	}

	var e explanation
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("reading the explanation: %w", err)
	}

	return e.print(p, r)
}
