package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"trunkline/identity"
)

// accountUsage says what names an account wherever one is asked for.
const accountUsage = "id, name or domain of the account"

func (p *program) accountCommand() *cobra.Command {
	return group("account", "The accounts", p.accountCreate(), p.accountList(), p.accountDelete())
}

func (p *program) accountCreate() *cobra.Command {
	var account identity.NewAccount
	command := &cobra.Command{
		Use:   "create NAME --domain D",
		Short: "Make an account and print its id",
		Args:  exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "domain"); err != nil {
				return err
			}
			account.Name = args[0]
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				made, err := directory.CreateAccount(cmd.Context(), account)
				if err != nil {
					return fmt.Errorf("creating account %s: %w", account.Name, err)
				}
				_, err = fmt.Fprintln(p.out, made.ID)
				return err
			})
		},
	}
	command.Flags().StringVar(&account.Domain, "domain", "", "what its users log in with")
	command.Flags().StringVar(&account.Parent, "parent", "", accountUsage+" above it")
	command.Flags().StringVar(&account.ID, "id", "", "its id; empty: made")
	return command
}

// accountRow is an account as --json shows it.
type accountRow struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Domain    string `json:"domain"`
	ParentID  string `json:"parent_id,omitempty"`
	CreatedAt int64  `json:"created_at"`
}

func (p *program) accountList() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the accounts",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				accounts, err := directory.Accounts(cmd.Context())
				if err != nil {
					return err
				}
				list := make([]accountRow, len(accounts))
				rows := make([][]string, len(accounts))
				for i, a := range accounts {
					list[i] = accountRow{a.ID, a.Name, a.Domain, a.ParentID, a.CreatedAt.Unix()}
					rows[i] = []string{a.ID, a.Name, a.Domain, orDash(a.ParentID), day(a.CreatedAt)}
				}
				if asJSON {
					return jsonLine(p.out, list)
				}
				return table(p.out, []string{"ID", "NAME", "DOMAIN", "PARENT", "CREATED"}, rows)
			})
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "as one JSON array")
	return command
}

func (p *program) accountDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ACCOUNT",
		Short: "Delete an account, named by id, name or domain",
		Args:  exactly("ACCOUNT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				if err := directory.DeleteAccount(cmd.Context(), args[0]); err != nil {
					return fmt.Errorf("deleting account %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}

// ofAccounts collects what list gives for the account, or for every account
// when none is named.
func ofAccounts[T any](ctx context.Context, directory *identity.Service, account string,
	list func(ctx context.Context, account string) ([]T, error)) ([]T, error) {
	if account != "" {
		return list(ctx, account)
	}
	accounts, err := directory.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, a := range accounts {
		some, err := list(ctx, a.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
