// Package listen has the command listen, a client of the events channel.
package listen

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/internal/channelclient"
	"trunkline/internal/cli"
)

// listenFlags are the flags of listen beside the channel's Config.
type listenFlags struct {
	asJSON, fromStdin, insecure bool
	pathSet, ca                 string
}

func Command(p *cli.Program) *cobra.Command {
	var cfg channelclient.Config
	var told listenFlags
	command := &cobra.Command{
		Use:   "listen --username U --domain D",
		Short: "Log in to the events channel and print each message on a line",
		Long: `Log in to the events channel and print each message on a line.

The password is read from ` + cli.EnvPassword + `, or from the first line of stdin with
--password-stdin. After a break listen goes on where it was, and prints nothing
twice. The self-signed certificate of a server in --data_dir is trusted.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RequireFlags(cmd, "username", "domain"); err != nil {
				return err
			}
			client, err := listener(p, cfg, told)
			if err != nil {
				return err
			}
			return client.Run(cmd.Context(), func(m channelclient.Message) error {
				line := m.JSON
				if told.asJSON {
					line = oneLine(line)
				} else {
					line = readable(line)
				}
				if _, err := p.Out.Write(append(line, '\n')); err != nil {
					return fmt.Errorf("printing an event: %w", err)
				}
				return nil
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&cfg.URL, "url", "", "URL of the server; empty: this machine, with the port in the settings")
	flags.StringVar(&cfg.Username, "username", "", "user to log in as")
	flags.StringVar(&cfg.Domain, "domain", "", "domain of the account")
	flags.BoolVar(&told.fromStdin, "password-stdin", false, "read the password from the first line of stdin")
	flags.StringSliceVar(&cfg.Filter.AccountIDs, "account", nil, "only events of these accounts")
	flags.StringSliceVar(&cfg.Filter.EventTypes, "type", nil, "only events of these types")
	flags.StringSliceVar(&cfg.Filter.QueueIDs, "queue", nil, "only events about these queues")
	flags.StringSliceVar(&cfg.Filter.AgentIDs, "agent", nil, "only events about these agents")
	flags.StringSliceVar(&cfg.Filter.CallIDs, "call", nil, "only events about these calls")
	flags.StringSliceVar(&cfg.Filter.Names, "name", nil, "only events with these names in their facts, such as agent.login or call.*")
	flags.StringVar(&cfg.Since, "since", "", "begin after this event id or cursor, or with the earliest event there is")
	flags.BoolVar(&told.asJSON, "json", false, "print the messages unchanged, as JSON")
	flags.BoolVar(&told.insecure, "insecure", false, "accept any certificate; for tests only")
	flags.StringVar(&told.ca, "ca", "", "file with certificates to trust beside the system's, PEM")
	flags.StringVar(&told.pathSet, "path-set", string(channelclient.PathsAPI), "api or ws: which of the two sets of endpoints")
	return command
}

// listener makes the client. What New blames is the command line.
func listener(p *cli.Program, cfg channelclient.Config, told listenFlags) (*channelclient.Client, error) {
	var err error
	if cfg.Password, err = p.Password("listen", told.fromStdin); err != nil {
		return nil, err
	}
	s, err := p.Settings()
	if err != nil {
		return nil, err
	}
	if cfg.TLS, err = cli.Trust(s, told.insecure, told.ca).Config(); err != nil {
		return nil, cli.UsageError(err)
	}
	if cfg.URL == "" {
		cfg.URL = cli.ServerURL(s)
	}
	cfg.Paths = channelclient.PathSet(told.pathSet)
	cfg.Status = func(text string) { fmt.Fprintln(p.Err, "trunkline: "+cli.Printable(text)) }
	client, err := channelclient.New(cfg)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	return client, nil
}
