package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/identity"
)

func (p *program) apikeyCommand() *cobra.Command {
	return group("apikey", "The API keys", p.apikeyCreate(), p.apikeyList(), p.apikeyDelete())
}

func (p *program) apikeyCreate() *cobra.Command {
	var account, name string
	command := &cobra.Command{
		Use:   "create --account ACCOUNT",
		Short: "Make an API key and print it: it is not shown again",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "account"); err != nil {
				return err
			}
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				key, _, err := directory.CreateAPIKey(cmd.Context(), account, name)
				if err != nil {
					return fmt.Errorf("creating an API key: %w", err)
				}
				_, err = fmt.Fprintln(p.out, key)
				return err
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", accountUsage)
	command.Flags().StringVar(&name, "name", "", "what it is for")
	return command
}

// apikeyRow is an API key as --json shows it.
type apikeyRow struct {
	ID        string `json:"id"`
	AccountID string `json:"account_id"`
	Name      string `json:"name,omitempty"`
	CreatedAt int64  `json:"created_at"`
}

func (p *program) apikeyList() *cobra.Command {
	var account string
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the API keys of an account, or of all, by id",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				keys, err := ofAccounts(cmd.Context(), directory, account, directory.APIKeys)
				if err != nil {
					return err
				}
				list := make([]apikeyRow, len(keys))
				rows := make([][]string, len(keys))
				for i, k := range keys {
					list[i] = apikeyRow{k.ID, k.AccountID, k.Name, k.CreatedAt.Unix()}
					rows[i] = []string{k.ID, k.AccountID, orDash(k.Name), day(k.CreatedAt)}
				}
				if asJSON {
					return jsonLine(p.out, list)
				}
				return table(p.out, []string{"ID", "ACCOUNT", "NAME", "CREATED"}, rows)
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", accountUsage)
	command.Flags().BoolVar(&asJSON, "json", false, "as one JSON array")
	return command
}

func (p *program) apikeyDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "Delete an API key",
		Args:  exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				if err := directory.DeleteAPIKey(cmd.Context(), args[0]); err != nil {
					return fmt.Errorf("deleting API key %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}
