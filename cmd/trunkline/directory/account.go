// Package directory has the commands on accounts, users and API keys.
package directory

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// AccountCommand returns the command account with its subcommands.
func AccountCommand(p *cli.Program) *cobra.Command {
	return cli.Group("account", "The accounts", accountCreate(p), accountList(p), accountOTP(p), accountDelete(p))
}

func accountCreate(p *cli.Program) *cobra.Command {
	var account identity.NewAccount
	command := &cobra.Command{
		Use:   "create NAME --domain D",
		Short: "Create an account and print its id",
		Args:  cli.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.RequireFlags(cmd, "domain"); err != nil {
				return err
			}

			account.Name = args[0]
			return p.WithNewDirectory(cmd.Context(), func(d *identity.Directory) error {
				created, err := d.CreateAccount(cmd.Context(), account)
				if err != nil {
					return fmt.Errorf("creating account %s: %w", account.Name, err)
				}
				_, err = fmt.Fprintln(p.Out, created.ID)
				return err
			})
		},
	}

	command.Flags().StringVar(&account.Domain, "domain", "", "domain that its users log in with")
	command.Flags().StringVar(&account.Parent, "parent", "", cli.AccountUsage+" above it")
	command.Flags().StringVar(&account.TimeZone, "time-zone", "",
		"IANA time zone of its reports, such as Europe/Berlin; empty: UTC")
	command.Flags().StringVar(&account.ID, "id", "", "its id; empty: generated")

	return command
}

// accountRow is an account as --json shows it.
type accountRow struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Domain    string `json:"domain"`
	ParentID  string `json:"parent_id,omitempty"`
	TimeZone  string `json:"time_zone,omitempty"`
	CreatedAt int64  `json:"created_at"`
}

func accountList(p *cli.Program) *cobra.Command {
	command := &cobra.Command{Use: "list", Short: "List the accounts", Args: cli.ExactArgs()}
	asJSON := cli.JSONListFlag(command.Flags())
	return runWithIdentity(p, command, func(ctx context.Context, s *identity.Service, _ []string) error {
		accounts, err := s.Directory.ListAccounts(ctx)
		if err != nil {
			return err
		}

		rows := mapSlice(accounts, func(a identity.Account) accountRow {
			return accountRow{a.ID, a.Name, a.Domain, a.ParentID, a.TimeZone, a.CreatedAt.Unix()}
		})
		return cli.List(p.Out, *asJSON, rows, []string{"ID", "NAME", "DOMAIN", "PARENT", "CREATED"},
			func(a accountRow) []string {
				return []string{a.ID, a.Name, a.Domain, cli.OrDash(a.ParentID), formatDay(a.CreatedAt)}
			})
	})
}

func accountDelete(p *cli.Program) *cobra.Command {
	var now bool
	command := &cobra.Command{
		Use:   "delete ACCOUNT",
		Short: "Delete an account, named by id, name or domain",
		Long: `Delete an account, named by id, name or domain, its users and its API keys, and
end their tokens. Its recordings, keys, configuration, call records and
figures are purged after account.purge_after, or at once with --now. --now also takes
the id of an account that was deleted before. If it is interrupted, run it again; a
running server continues it too. The id is never assigned to another account.`,
		Args: cli.ExactArgs("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.WithStores(cmd.Context(), func(stores cli.Stores) error {
				id, err := stores.Identity.Directory.DeleteAccount(cmd.Context(), args[0], "")
				// An id of an account that was deleted before: RunNow says so if it is none.
				if now && fault.KindOf(err) == fault.KindNotFound {
					id, err = args[0], nil // already deleted
				}
				if err == nil && now {
					err = purge(p, cmd.Context(), stores, id)
				}
				if err != nil {
					return fmt.Errorf("deleting account %s: %w", args[0], err)
				}

				return nil
			})
		},
	}

	command.Flags().BoolVar(&now, "now", false, "purge its data at once")
	return command
}
