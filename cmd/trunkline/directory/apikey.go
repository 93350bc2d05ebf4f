package directory

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

// APIKeyCommand returns the command apikey with its subcommands.
func APIKeyCommand(p *cli.Program) *cobra.Command {
	return cli.Group("apikey", "The API keys", apikeyCreate(p), apikeyList(p), apikeyDelete(p))
}

func apikeyCreate(p *cli.Program) *cobra.Command {
	var key identity.NewAPIKey
	var scopes []string
	var expires, role string
	command := &cobra.Command{
		Use:   "create --account ACCOUNT",
		Short: "Create an API key and print it: it is not shown again",
		Example: `  trunkline apikey create --account acme --name pbx --scope ingest
  trunkline apikey create --account acme --name wallboard --scope subscribe,read --expires 90d`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}
			// Else nil, for which CreateAPIKey has the same default as the flag shows.
			if cmd.Flags().Changed("scope") {
				key.Scopes = toScopes(scopes)
			}

			key.Role = identity.Role(role)
			if expires != "" {
				lifetime, err := parseLifetime(expires)
				if err != nil {
					return cli.Usagef("--expires: %w", err)
				}
				key.ExpiresAt = time.Now().Add(lifetime)
			}

			return p.WithDirectory(cmd.Context(), func(directory *identity.Directory) error {
				created, _, err := directory.CreateAPIKey(cmd.Context(), key)
				if err != nil {
					return fmt.Errorf("creating an API key: %w", err)
				}
				_, err = fmt.Fprintln(p.Out, created)
				return err
			})
		},
	}

	command.Flags().StringVar(&key.Account, "account", "", cli.AccountUsage)
	command.Flags().StringVar(&key.Name, "name", "", "purpose of the key")
	command.Flags().StringSliceVar(&scopes, "scope", scopeNames(identity.DefaultScopes()),
		"rights, comma-separated, of "+strings.Join(scopeNames(identity.Scopes()), ", "))
	command.Flags().StringVar(&role, "role", string(identity.RoleAdmin),
		roleNames()+": what the key sees within its scopes")
	addLimitFlags(command, &key.Limits)
	command.Flags().StringVar(&expires, "expires", "", "lifetime, such as 12h or 90d; empty: it does not expire")

	return command
}

func toScopes(names []string) []identity.Scope {
	scopes := make([]identity.Scope, len(names))
	for i, name := range names {
		scopes[i] = identity.Scope(strings.TrimSpace(name))
	}
	return scopes
}

func scopeNames(scopes []identity.Scope) []string {
	names := make([]string, len(scopes))
	for i, scope := range scopes {
		names[i] = string(scope)
	}
	return names
}

const maxLifetimeDays = 100 * 366

// parseLifetime parses the lifetime of a key: a number of days with d, or a Go duration. The error
// is a text for the user.
func parseLifetime(text string) (time.Duration, error) {
	lifetime, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		if n > maxLifetimeDays {
			return 0, fmt.Errorf("%q is more than %d days", text, maxLifetimeDays)
		}
		lifetime = time.Duration(n) * 24 * time.Hour
	}

	if err != nil || lifetime <= 0 {
		return 0, fmt.Errorf("%q is not a lifetime such as 12h or 90d", text)
	}

	return lifetime, nil
}

// apikeyRow is an API key as --json shows it.
type apikeyRow struct {
	ID        string           `json:"id"`
	AccountID string           `json:"account_id"`
	Name      string           `json:"name,omitempty"`
	Scopes    []identity.Scope `json:"scopes"`
	Role      identity.Role    `json:"role"`
	QueueIDs  []string         `json:"queue_ids,omitempty"`
	AgentIDs  []string         `json:"agent_ids,omitempty"`
	ExpiresAt int64            `json:"expires_at,omitempty"`
	CreatedAt int64            `json:"created_at"`
}

func apikeyList(p *cli.Program) *cobra.Command {
	return listByAccount(p, &cobra.Command{Use: "list", Short: "List the API keys of an account, or of all, by id"},
		(*identity.Directory).ListAPIKeys,
		func(k identity.APIKey) apikeyRow {
			row := apikeyRow{ID: k.ID, AccountID: k.AccountID, Name: k.Name, Scopes: k.Scopes, Role: k.Role,
				QueueIDs: k.QueueIDs, AgentIDs: k.AgentIDs, CreatedAt: k.CreatedAt.Unix()}
			if !k.ExpiresAt.IsZero() {
				row.ExpiresAt = k.ExpiresAt.Unix()
			}
			return row
		}, []string{"ID", "ACCOUNT", "NAME", "SCOPES", "EXPIRES", "CREATED"}, func(k apikeyRow) []string {
			expires := "never"
			if k.ExpiresAt != 0 {
				expires = formatDay(k.ExpiresAt)
			}
			return []string{k.ID, k.AccountID, cli.OrDash(k.Name), strings.Join(scopeNames(k.Scopes), ","), expires,
				formatDay(k.CreatedAt)}
		})
}

func apikeyDelete(p *cli.Program) *cobra.Command {
	return runWithIdentity(p, &cobra.Command{Use: "delete ID", Short: "Delete an API key", Args: cli.ExactArgs("ID")},
		func(ctx context.Context, s *identity.Service, args []string) error {
			if err := s.Directory.DeleteAPIKey(ctx, args[0], ""); err != nil {
				return fmt.Errorf("deleting API key %s: %w", args[0], err)
			}
			return nil
		})
}
