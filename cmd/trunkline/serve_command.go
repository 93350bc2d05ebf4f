package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"trunkline/app"
	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/settings"
)

// runServer runs the app with the settings until ctx ends.
type runServer func(ctx context.Context, s *settings.Settings, log *slog.Logger) error

func serveCommand(p *cli.Program, serve runServer) *cobra.Command {
	return cli.ShowSettings(&cobra.Command{
		Use:   "serve",
		Short: "Run the server, in all roles unless --roles picks some",
		Long: `Run the server, in all roles unless --roles picks some.

SIGTERM or SIGINT drains it: readiness fails first, consumers finish, subscribers
are disconnected so that they reconnect elsewhere. A second signal ends it at once.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, unknown, err := p.SettingsAndUnknown()
			if err != nil {
				return err
			}

			log, err := cli.NewLogger(p.Err, &s.Log)
			if err != nil {
				return err
			}

			for _, name := range unknown {
				log.Warn("unknown TRUNKLINE_ variable", "name", name)
			}

			return serve(cmd.Context(), s, log)
		},
	})
}

// serve runs the app.
func serve(ctx context.Context, s *settings.Settings, log *slog.Logger) error {
	// Before app.New, which creates a client.
	backend.RedisLog(log)
	a, err := app.New(ctx, app.Config{Settings: s, Log: log, Version: readBuildInfo().version})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // stopped while a backend was unavailable
	}
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
