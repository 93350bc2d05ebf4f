package directory

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/identity"
	"trunkline/internal/cli"
)

func APIKeyCommand(p *cli.Program) *cobra.Command {
	return cli.Group("apikey", "The API keys", apikeyCreate(p), apikeyList(p), apikeyDelete(p))
}

func apikeyCreate(p *cli.Program) *cobra.Command {
	var account, name string
	command := &cobra.Command{
		Use:   "create --account ACCOUNT",
		Short: "Make an API key and print it: it is not shown again",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				key, _, err := directory.CreateAPIKey(cmd.Context(), account, name)
				if err != nil {
					return fmt.Errorf("creating an API key: %w", err)
				}
				_, err = fmt.Fprintln(p.Out, key)
				return err
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", cli.AccountUsage)
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

func apikeyList(p *cli.Program) *cobra.Command {
	var account string
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the API keys of an account, or of all, by id",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				keys, err := ofAccounts(cmd.Context(), directory, account, directory.APIKeys)
				if err != nil {
					return err
				}
				list := make([]apikeyRow, len(keys))
				rows := make([][]string, len(keys))
				for i, k := range keys {
					list[i] = apikeyRow{k.ID, k.AccountID, k.Name, k.CreatedAt.Unix()}
					rows[i] = []string{k.ID, k.AccountID, cli.OrDash(k.Name), day(k.CreatedAt)}
				}
				if asJSON {
					return cli.JSONLine(p.Out, list)
				}
				return cli.Table(p.Out, []string{"ID", "ACCOUNT", "NAME", "CREATED"}, rows)
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", cli.AccountUsage)
	command.Flags().BoolVar(&asJSON, "json", false, "as one JSON array")
	return command
}

func apikeyDelete(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "Delete an API key",
		Args:  cli.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				if err := directory.DeleteAPIKey(cmd.Context(), args[0]); err != nil {
					return fmt.Errorf("deleting API key %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}
