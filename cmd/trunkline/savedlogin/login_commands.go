package savedlogin

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// credentials is the body of a login.
type credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Domain   string `json:"domain"`
	OTP      string `json:"otp,omitempty"`
}

// LoginCommand returns the command login.
func LoginCommand(p *cli.Program) *cobra.Command {
	var c credentials
	var server *cli.ServerFlags
	var fromStdin bool
	command := &cobra.Command{
		Use:   "login --username U --domain D",
		Short: "Log in to a server and keep the session for listen, call, cdr, explain and webhook",
		Long: `Log in to a server and keep the session for listen, call, cdr, explain and webhook.

The password is read from ` + cli.EnvPassword + `, or from the first line of stdin with
--password-stdin. The tokens, not the password, are kept in trunkline/login.json
below XDG_CONFIG_HOME or ~/.config, which only you can read; trunkline logout
revokes and removes them. A session that is not used for 30 days ends.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := cli.RequireFlags(cmd, "username", "domain"); err != nil {
				return err
			}

			c.Password, err = p.Password("login", fromStdin)
			if err != nil {
				return err
			}

			return createLogin(cmd.Context(), p, server, c)
		},
	}

	flags := command.Flags()
	server = p.ServerFlags(flags)
	flags.StringVar(&c.Username, "username", "", "user to log in as")
	flags.StringVar(&c.Domain, "domain", "", "domain of the account")
	flags.StringVar(&c.OTP, "otp", "", "one-time password or recovery code, for users who have one")
	flags.BoolVar(&fromStdin, "password-stdin", false, "read the password from the first line of stdin")

	return command
}

func createLogin(ctx context.Context, p *cli.Program, server *cli.ServerFlags, c credentials) error {
	f, err := findLoginFile(p)
	if err != nil {
		return err
	}

	l := login{Username: c.Username, Domain: c.Domain}
	l.URL, err = server.URL()
	if err != nil {
		return err
	}

	files, insecure, err := server.TrustedFiles()
	if err != nil {
		return err
	}

	l.Insecure = insecure
	for _, name := range files {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("locating %s: %w", name, err)
		}
		l.CAFiles = append(l.CAFiles, absolute)
	}

	tlsConfig, err := cli.ClientTLSFromFiles(l.Insecure, l.CAFiles...)
	if err != nil {
		return cli.UsageError(err)
	}

	client := newClient(tlsConfig)
	defer client.CloseIdleConnections()

	t, err := requestTokens(ctx, client, l.URL+"/ucp/v2/login", c)
	if err != nil {
		return fmt.Errorf("logging in at %s: %w", l.URL, err)
	}

	l.setTokens(t, time.Now())
	if err := f.withLock(func() error { return f.write(l) }); err != nil {
		return err
	}

	_, err = fmt.Fprintf(p.Out, "logged in at %s as %s of account %s\n", l.URL, l.Username, l.AccountID)
	return err
}

// LogoutCommand returns the command logout.
func LogoutCommand(p *cli.Program) *cobra.Command {
	return WithSession(p, &cobra.Command{
		Use:   "logout",
		Short: "Revoke the session that login keeps, and remove it",
		Args:  cli.ExactArgs(),
	}, func(cmd *cobra.Command, s *Session, _ []string) error {
		_, err := s.Call(cmd.Context(), http.MethodPost, "/ucp/v2/logout", http.StatusNoContent)
		if err != nil {
			return fmt.Errorf("revoking the session at %s, which is kept: %w", s.login.URL, err)
		}
		return s.file.withLock(s.file.remove)
	})
}
