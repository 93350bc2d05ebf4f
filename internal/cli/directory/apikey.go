package directory

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/identity"
	"trunkline/internal/cli"
)

func APIKeyCommand(p *cli.Program) *cobra.Command {
	return cli.Group("apikey", "The API keys", apikeyCreate(p), apikeyList(p), apikeyDelete(p))
}

func apikeyCreate(p *cli.Program) *cobra.Command {
	var key identity.NewAPIKey
	var scopes []string
	var expires string
	command := &cobra.Command{
		Use:   "create --account ACCOUNT",
		Short: "Make an API key and print it: it is not shown again",
		Example: `  trunkline apikey create --account acme --name pbx --scope ingest
  trunkline apikey create --account acme --name wallboard --scope subscribe,read --expires 90d`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}
			if cmd.Flags().Changed("scope") {
				key.Scopes = toScopes(scopes)
			}
			if expires != "" {
				life, err := parseLife(expires)
				if err != nil {
					return cli.Usagef("--expires: %w", err)
				}
				key.ExpiresAt = time.Now().Add(life)
			}
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				made, _, err := directory.CreateAPIKey(cmd.Context(), key)
				if err != nil {
					return fmt.Errorf("creating an API key: %w", err)
				}
				_, err = fmt.Fprintln(p.Out, made)
				return err
			})
		},
	}
	command.Flags().StringVar(&key.Account, "account", "", cli.AccountUsage)
	command.Flags().StringVar(&key.Name, "name", "", "what it is for")
	command.Flags().StringSliceVar(&scopes, "scope", names(identity.DefaultScopes()),
		"rights, comma-separated, of "+strings.Join(names(identity.Scopes()), ", "))
	command.Flags().StringVar(&expires, "expires", "", "life, such as 12h or 90d; empty: it does not expire")
	return command
}

func toScopes(names []string) []identity.Scope {
	scopes := make([]identity.Scope, len(names))
	for i, name := range names {
		scopes[i] = identity.Scope(strings.TrimSpace(name))
	}
	return scopes
}

func names(scopes []identity.Scope) []string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return names
}

const maxLifeDays = 100 * 366

// parseLife reads how long a key is valid: a number of days with d, or a duration
// of Go. The error is for the user.
func parseLife(text string) (time.Duration, error) {
	life, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		if n > maxLifeDays {
			return 0, fmt.Errorf("%q is more than %d days", text, maxLifeDays)
		}
		life = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || life <= 0 {
		return 0, fmt.Errorf("%q is not a life such as 12h or 90d", text)
	}
	return life, nil
}

// apikeyRow is an API key as --json shows it.
type apikeyRow struct {
	ID        string           `json:"id"`
	AccountID string           `json:"account_id"`
	Name      string           `json:"name,omitempty"`
	Scopes    []identity.Scope `json:"scopes"`
	ExpiresAt int64            `json:"expires_at,omitempty"`
	CreatedAt int64            `json:"created_at"`
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
					list[i] = apikeyRow{ID: k.ID, AccountID: k.AccountID, Name: k.Name, Scopes: k.Scopes, CreatedAt: k.CreatedAt.Unix()}
					expires := "never"
					if !k.ExpiresAt.IsZero() {
						list[i].ExpiresAt, expires = k.ExpiresAt.Unix(), day(k.ExpiresAt)
					}
					rows[i] = []string{k.ID, k.AccountID, cli.OrDash(k.Name), strings.Join(names(k.Scopes), ","), expires, day(k.CreatedAt)}
				}
				if asJSON {
					return cli.JSONLine(p.Out, list)
				}
				return cli.Table(p.Out, []string{"ID", "ACCOUNT", "NAME", "SCOPES", "EXPIRES", "CREATED"}, rows)
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
