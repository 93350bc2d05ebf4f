// Package listen has the command listen, a client of the events channel.
package listen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	trunkline "trunkline/clients/go"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/event"
)

const sinceEarliest = "earliest"

// listenFlags are the flags of listen.
type listenFlags struct {
	client                      trunkline.Config
	options                     trunkline.Options
	asJSON, fromStdin, insecure bool
	pathSet, ca                 string
}

// Command returns the command listen.
func Command(p *cli.Program) *cobra.Command {
	var f listenFlags
	command := &cobra.Command{
		Use:   "listen [--username U --domain D]",
		Short: "Log in to the events channel and print each message on a line",
		Long: `Log in to the events channel and print each message on a line, as the user of
trunkline login, or of --username.

With --username the password is read from ` + cli.EnvPassword + `, or from the first line of
stdin with --password-stdin, and the self-signed certificate of a server in
--data_dir is trusted. After a lost connection listen resumes, and prints no message
twice.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := f.connect(p)
			if err != nil {
				return err
			}
			defer client.Close()
			return f.run(cmd.Context(), p, client)
		},
	}

	flags := command.Flags()
	flags.StringVar(&f.client.URL, "url", "", "URL of the server; empty: this machine, with the port in the settings")
	flags.StringVar(&f.client.Username, "username", "", "user to log in as")
	flags.StringVar(&f.client.Domain, "domain", "", "domain of the account")
	flags.BoolVar(&f.fromStdin, "password-stdin", false, "read the password from the first line of stdin")
	flags.StringSliceVar(&f.options.Filters.AccountIDs, "account", nil, "only events of these accounts")
	flags.StringSliceVar(&f.options.Filters.EventTypes, "type", nil, "only events of these types")
	flags.StringSliceVar(&f.options.Filters.QueueIDs, "queue", nil, "only events about these queues")
	flags.StringSliceVar(&f.options.Filters.AgentIDs, "agent", nil, "only events about these agents")
	flags.StringSliceVar(&f.options.Filters.CallIDs, "call", nil, "only events about these calls")
	flags.StringSliceVar(&f.options.Filters.Names, "name", nil,
		"only events with these names in their facts, such as agent.login or call.*")
	flags.StringVar(&f.options.Since, "since", "",
		"begin at a time (10m, 2026-11-22T09:00Z), after an event id or cursor, or with the earliest event there is")
	flags.BoolVar(&f.asJSON, "json", false, "print the messages unchanged, as JSON")
	flags.BoolVar(&f.insecure, "insecure", false, "accept any certificate; for tests only")
	flags.StringVar(&f.ca, "ca", "", "file with certificates to trust in addition to the system's, PEM")
	flags.StringVar(&f.pathSet, "path-set", "api", "endpoints to use: api or ws")

	return command
}

// connect returns the client. Errors of New are usage errors.
func (f *listenFlags) connect(p *cli.Program) (*trunkline.Client, error) {
	prefixes := map[string]string{"api": "/api/v2/cc_events_channel", "ws": "/ws/v1/cc_events"}
	f.client.PathPrefix = prefixes[f.pathSet]
	if f.client.PathPrefix == "" {
		return nil, cli.Usagef("the path set must be api or ws, got %q", f.pathSet)
	}

	credentials := f.useSession
	if f.client.Username != "" || f.client.Domain != "" {
		credentials = f.usePassword
	}
	if err := credentials(p); err != nil {
		return nil, err
	}

	client, err := trunkline.New(f.client)
	if err != nil {
		return nil, cli.UsageError(err)
	}

	return client, nil
}

// useSession sets the server and the token of the saved login.
func (f *listenFlags) useSession(p *cli.Program) error {
	session, err := savedlogin.Open(p)
	if err != nil {
		return err
	}

	if f.client.URL != "" || f.ca != "" || f.insecure {
		return cli.Usagef(
			"--url, --ca and --insecure need --username: trunkline login keeps the server that it logged in to")
	}

	f.client.URL, f.client.TLS, f.client.PortalToken = session.URL(), session.TLS(), session.AccessToken
	return nil
}

func (f *listenFlags) usePassword(p *cli.Program) (err error) {
	if f.client.Username == "" || f.client.Domain == "" {
		return cli.Usagef("--username and --domain belong together")
	}

	f.client.Password, err = p.Password("listen", f.fromStdin)
	if err != nil {
		return err
	}

	s, err := p.Settings()
	if err != nil {
		return err
	}

	f.client.TLS, err = cli.ClientTLS(s, f.insecure, f.ca)
	if err != nil {
		return cli.UsageError(err)
	}

	if f.client.URL == "" {
		f.client.URL = cli.ServerURL(s)
	}

	return nil
}

// run listens from --since on. If the log no longer has the events of that time, it begins with
// the earliest.
func (f *listenFlags) run(ctx context.Context, p *cli.Program, client *trunkline.Client) error {
	if f.options.Since == "" || f.options.Since == sinceEarliest || strings.HasPrefix(f.options.Since, "cc_evt_") {
		return f.listen(ctx, p, client, "", f.options.Since)
	}

	start, err := cli.ParseTime("since", f.options.Since, time.Now())
	if err != nil {
		return fmt.Errorf("%w; or an event id, a cursor, or %s", err, sinceEarliest)
	}

	from := event.FirstID(start, 0).String()
	shown := start.Format(time.DateTime)
	f.options.Since = from
	err = f.listen(ctx, p, client, from, shown)
	if errors.Is(err, trunkline.ErrPositionGone) {
		f.options.Since = sinceEarliest // the log begins after --since
		err = f.listen(ctx, p, client, from, shown)
	}

	return err
}

// listen prints events until ctx ends or an error is permanent. It skips events with an id below
// from, which a resume by time may repeat. since is the position in the status line until the
// first event.
func (f *listenFlags) listen(ctx context.Context, p *cli.Program, client *trunkline.Client, from, since string) error {
	f.options.Status = func(s trunkline.Status) {
		text := "connected, listening"
		if s.Err != nil {
			text = fmt.Sprintf("%v; retrying in %s", s.Err, s.RetryIn.Round(10*time.Millisecond))
		} else if since != "" {
			id, _, _ := strings.Cut(since, ".") // a cursor's event id, without its positions
			text = "connected, resuming from " + id
		}

		fmt.Fprintln(p.Err, "trunkline: "+cli.Printable(text))
	}

	for item, err := range client.Subscribe(ctx, f.options) {
		if err != nil {
			return err
		}

		// Also of an event that is skipped: the status line names the position of a resume.
		since = item.Event.Cursor
		if item.Event.ID < from {
			continue
		}

		line := textLine(item.Event.JSON)
		if f.asJSON {
			line = compactJSON(item.Event.JSON)
		}

		_, err := p.Out.Write(append(line, '\n'))
		if err != nil {
			return fmt.Errorf("printing an event: %w", err)
		}
	}

	return nil
}
