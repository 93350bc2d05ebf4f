package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/identity"
)

func (p *program) userCommand() *cobra.Command {
	return group("user", "The users", p.userCreate(), p.userList(), p.userDelete())
}

func (p *program) userCreate() *cobra.Command {
	var user identity.NewUser
	var role string
	var fromStdin bool
	command := &cobra.Command{
		Use:   "create USERNAME --account ACCOUNT",
		Short: "Make a user and print its id; a password that is not given is made and told on stderr",
		Args:  exactly("USERNAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "account"); err != nil {
				return err
			}
			user.Username, user.Role = args[0], identity.Role(role)
			if !user.Role.Known() {
				return usagef("--role is user or admin, not %q", role)
			}
			var err error
			if user.Password = rand.Text(); fromStdin {
				if user.Password, err = readPassword(p.in); err != nil {
					return err
				}
			}
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				made, err := directory.CreateUser(cmd.Context(), user)
				if err != nil {
					return fmt.Errorf("creating user %s: %w", user.Username, err)
				}
				if !fromStdin {
					fmt.Fprintf(p.err, "password of %s: %s\n", made.Username, user.Password)
				}
				_, err = fmt.Fprintln(p.out, made.ID)
				return err
			})
		},
	}
	command.Flags().StringVar(&user.Account, "account", "", accountUsage)
	command.Flags().StringVar(&role, "role", string(identity.RoleUser), "user or admin")
	command.Flags().StringVar(&user.PresenceID, "presence-id", "", "extension")
	command.Flags().BoolVar(&fromStdin, "password-stdin", false, "read the password from the first line of stdin")
	return command
}

// readPassword is the first line of in.
func readPassword(in io.Reader) (string, error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	password := strings.TrimRight(line, "\r\n")
	if password == "" {
		return "", usagef("there is no password on stdin")
	}
	return password, nil
}

// userRow is a user as --json shows it.
type userRow struct {
	ID         string        `json:"id"`
	AccountID  string        `json:"account_id"`
	Username   string        `json:"username"`
	Role       identity.Role `json:"role"`
	PresenceID string        `json:"presence_id,omitempty"`
	CreatedAt  int64         `json:"created_at"`
}

func (p *program) userList() *cobra.Command {
	var account string
	var asJSON bool
	command := &cobra.Command{
		Use:   "list",
		Short: "List the users of an account, or of all",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				users, err := ofAccounts(cmd.Context(), directory, account, directory.Users)
				if err != nil {
					return err
				}
				list := make([]userRow, len(users))
				rows := make([][]string, len(users))
				for i, u := range users {
					list[i] = userRow{u.ID, u.AccountID, u.Username, u.Role, u.PresenceID, u.CreatedAt.Unix()}
					rows[i] = []string{u.ID, u.AccountID, u.Username, string(u.Role), orDash(u.PresenceID), day(u.CreatedAt)}
				}
				if asJSON {
					return jsonLine(p.out, list)
				}
				return table(p.out, []string{"ID", "ACCOUNT", "USERNAME", "ROLE", "PRESENCE", "CREATED"}, rows)
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", accountUsage)
	command.Flags().BoolVar(&asJSON, "json", false, "as one JSON array")
	return command
}

func (p *program) userDelete() *cobra.Command {
	var account string
	command := &cobra.Command{
		Use:   "delete USERNAME --account ACCOUNT",
		Short: "Delete a user and end the user's tokens",
		Args:  exactly("USERNAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "account"); err != nil {
				return err
			}
			return p.withDirectory(cmd.Context(), func(directory *identity.Service) error {
				if err := directory.DeleteUser(cmd.Context(), account, args[0]); err != nil {
					return fmt.Errorf("deleting user %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", accountUsage)
	return command
}
