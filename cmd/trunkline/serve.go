package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"trunkline/app"
	"trunkline/app/backend"
	"trunkline/config/settings"
)

func (p *program) serveCommand() *cobra.Command {
	return showSettings(&cobra.Command{
		Use:   "serve",
		Short: "Run the server, in all roles unless --roles picks some",
		Long: `Run the server, in all roles unless --roles picks some.

SIGTERM or SIGINT drains it: readiness fails first, consumers finish, subscribers
are told to come back. A second signal ends it at once.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, unknown, err := p.settingsAndUnknown()
			if err != nil {
				return err
			}
			log, err := logger(p.err, &s.Log)
			if err != nil {
				return err
			}
			for _, name := range unknown {
				log.Warn("a variable is no setting", "name", name)
			}
			return p.serve(cmd.Context(), s, log)
		},
	})
}

// serve is the server itself.
func serve(ctx context.Context, s *settings.Settings, log *slog.Logger) error {
	backend.RedisLog(log)
	a, err := app.New(ctx, app.Config{Settings: s, Log: log, Version: readBuildInfo().version})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // told to stop while it waited for a backend
	}
	if err != nil {
		return err
	}
	return a.Run(ctx)
}
