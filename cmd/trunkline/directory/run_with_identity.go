package directory

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

// runWithIdentity completes a command that runs on accounts, users and tokens, with the required flags. It opens
// the identity.Service for run.
func runWithIdentity(p *cli.Program, command *cobra.Command,
	run func(ctx context.Context, s *identity.Service, args []string) error, required ...string) *cobra.Command {
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cli.RequireFlags(cmd, required...); err != nil {
			return err
		}
		return p.WithIdentity(cmd.Context(), func(s *identity.Service) error { return run(cmd.Context(), s, args) })
	}
	return command
}

// runOnUser completes a command about USERNAME of --account.
func runOnUser(p *cli.Program, command *cobra.Command,
	run func(ctx context.Context, s *identity.Service, account, username string) error) *cobra.Command {
	account := command.Flags().String("account", "", cli.AccountUsage)
	command.Args = cli.ExactArgs("USERNAME")
	return runWithIdentity(p, command, func(ctx context.Context, s *identity.Service, args []string) error {
		return run(ctx, s, *account, args[0])
	}, "account")
}

// listByAccount completes a command that prints the result of list for --account, or for every
// account without it. view returns a row for --json.
func listByAccount[T, R any](p *cli.Program, command *cobra.Command,
	list func(d *identity.Directory, ctx context.Context, account string) ([]T, error),
	view func(T) R, header []string, cells func(R) []string) *cobra.Command {
	account, asJSON := command.Flags().String("account", "", cli.AccountUsage), cli.JSONListFlag(command.Flags())
	command.Args = cli.ExactArgs()
	return runWithIdentity(p, command, func(ctx context.Context, s *identity.Service, _ []string) error {
		refs := []string{*account}
		if *account == "" {
			accounts, err := s.Directory.ListAccounts(ctx)
			if err != nil {
				return err
			}
			refs = mapSlice(accounts, func(a identity.Account) string { return a.ID })
		}

		var all []T
		for _, ref := range refs {
			items, err := list(s.Directory, ctx, ref)
			if err != nil {
				return err
			}
			all = append(all, items...)
		}

		return cli.List(p.Out, *asJSON, mapSlice(all, view), header, cells)
	})
}

// mapSlice returns the results of view for each item.
func mapSlice[T, R any](list []T, view func(T) R) []R {
	rows := make([]R, len(list))
	for i, item := range list {
		rows[i] = view(item)
	}
	return rows
}

// formatDay returns the day of Unix seconds, in UTC.
func formatDay(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.DateOnly) }
