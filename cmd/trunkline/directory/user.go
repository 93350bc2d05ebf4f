package directory

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

// UserCommand returns the command user with its subcommands.
func UserCommand(p *cli.Program) *cobra.Command {
	return cli.Group("user", "The users", userCreate(p), userList(p), userPassword(p), otpCommand(p), userDelete(p),
		deviceCommand(p))
}

func userCreate(p *cli.Program) *cobra.Command {
	var user identity.NewUser
	var role string
	var fromStdin bool
	command := &cobra.Command{
		Use:   "create USERNAME --account ACCOUNT",
		Short: "Create a user and print its id; a password that is not given is generated and printed on stderr",
		Args:  cli.ExactArgs("USERNAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}

			user.Username, user.Role = args[0], identity.Role(role)
			if !user.Role.Valid() {
				return cli.Usagef("--role is %s, not %q", roleNames(), role)
			}

			generated := !fromStdin && user.OIDCSubject == ""
			var err error
			switch {
			case generated:
				user.Password = rand.Text()
			case fromStdin:
				user.Password, err = cli.ReadPassword(p.In)
				if err != nil {
					return err
				}
			}

			return p.WithDirectory(cmd.Context(), func(directory *identity.Directory) error {
				created, err := directory.CreateUser(cmd.Context(), user)
				if err != nil {
					return fmt.Errorf("creating user %s: %w", user.Username, err)
				}

				if generated {
					fmt.Fprintf(p.Err, "password of %s: %s\n", created.Username, user.Password)
				}

				_, err = fmt.Fprintln(p.Out, created.ID)
				return err
			})
		},
	}

	command.Flags().StringVar(&user.Account, "account", "", cli.AccountUsage)
	command.Flags().StringVar(&role, "role", string(identity.RoleUser), roleNames())
	addLimitFlags(command, &user.Limits)
	command.Flags().StringVar(&user.PresenceID, "presence-id", "", "extension")
	command.Flags().StringVar(&user.OIDCSubject, "oidc-subject", "",
		"the user's sub at the OpenID Connect provider, in place of a password")
	command.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from the first line of stdin")

	return command
}

// roleNames returns the roles, for texts.
func roleNames() string {
	names := mapSlice(identity.Roles(), func(r identity.Role) string { return string(r) })
	return strings.Join(names, ", ")
}

// addLimitFlags adds the flags of the queues or agents to which a role is limited.
func addLimitFlags(command *cobra.Command, limits *identity.Limits) {
	command.Flags().StringArrayVar(&limits.QueueIDs, "queue", nil,
		"a queue of a supervisor, repeatable; none: all of the account")
	command.Flags().StringArrayVar(&limits.AgentIDs, "agent", nil,
		"an agent id of an agent, repeatable; none: those with the user's extension")
}

// userRow is a user as --json shows it.
type userRow struct {
	ID         string        `json:"id"`
	AccountID  string        `json:"account_id"`
	Username   string        `json:"username"`
	Role       identity.Role `json:"role"`
	PresenceID string        `json:"presence_id,omitempty"`
	QueueIDs   []string      `json:"queue_ids,omitempty"`
	AgentIDs   []string      `json:"agent_ids,omitempty"`
	CreatedAt  int64         `json:"created_at"`
}

func userList(p *cli.Program) *cobra.Command {
	return listByAccount(p, &cobra.Command{Use: "list", Short: "List the users of an account, or of all"},
		(*identity.Directory).ListUsers,
		func(u identity.User) userRow {
			return userRow{u.ID, u.AccountID, u.Username, u.Role, u.PresenceID, u.QueueIDs, u.AgentIDs,
				u.CreatedAt.Unix()}
		}, []string{"ID", "ACCOUNT", "USERNAME", "ROLE", "PRESENCE", "CREATED"}, func(u userRow) []string {
			return []string{u.ID, u.AccountID, u.Username, string(u.Role), cli.OrDash(u.PresenceID),
				formatDay(u.CreatedAt)}
		})
}

func userPassword(p *cli.Program) *cobra.Command {
	var account string
	var fromStdin bool
	command := &cobra.Command{
		Use:   "password USERNAME --account ACCOUNT",
		Short: "Set a user's password and end the user's sessions; a password that is not given is generated and printed on stderr",
		Args:  cli.ExactArgs("USERNAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}

			password := rand.Text()
			if fromStdin {
				password, err = cli.ReadPassword(p.In)
				if err != nil {
					return err
				}
			}

			return p.WithIdentity(cmd.Context(), func(s *identity.Service) error {
				if err := s.Credentials.SetPassword(cmd.Context(), account, args[0], password); err != nil {
					return fmt.Errorf("setting the password of %s: %w", args[0], err)
				}
				if !fromStdin {
					fmt.Fprintf(p.Err, "password of %s: %s\n", args[0], password)
				}

				return nil
			})
		},
	}

	command.Flags().StringVar(&account, "account", "", cli.AccountUsage)
	command.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from the first line of stdin")
	return command
}

func userDelete(p *cli.Program) *cobra.Command {
	return runOnUser(p, &cobra.Command{
		Use:   "delete USERNAME --account ACCOUNT",
		Short: "Delete a user and end the user's tokens",
	}, func(ctx context.Context, s *identity.Service, account, username string) error {
		if err := s.Directory.DeleteUser(ctx, account, username); err != nil {
			return fmt.Errorf("deleting user %s: %w", username, err)
		}
		return nil
	})
}
