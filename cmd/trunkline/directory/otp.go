package directory

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

func otpCommand(p *cli.Program) *cobra.Command {
	return cli.Group("otp", "The one-time passwords of a user", otpEnrol(p), otpDelete(p))
}

func otpEnrol(p *cli.Program) *cobra.Command {
	return runOnUser(p, &cobra.Command{
		Use:   "enrol USERNAME --account ACCOUNT",
		Short: "Set up one-time passwords for a user: print the authenticator's URI and, one per line, recovery codes, all shown once",
	}, func(ctx context.Context, s *identity.Service, account, username string) error {
		enrolment, codes, err := s.Credentials.EnrolOTP(ctx, account, username)
		if err != nil {
			return fmt.Errorf("setting up one-time passwords of %s: %w", username, err)
		}
		_, err = fmt.Fprintln(p.Out, strings.Join(append([]string{enrolment.URI}, codes...), "\n"))
		return err
	})
}

func otpDelete(p *cli.Program) *cobra.Command {
	return runOnUser(p, &cobra.Command{
		Use:   "delete USERNAME --account ACCOUNT",
		Short: "Remove the one-time passwords and recovery codes of a user",
	}, func(ctx context.Context, s *identity.Service, account, username string) error {
		if err := s.Credentials.DeleteOTP(ctx, account, username); err != nil {
			return fmt.Errorf("deleting one-time passwords of %s: %w", username, err)
		}
		return nil
	})
}

func accountOTP(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "otp ACCOUNT optional|required",
		Short: "Set whether the account's administrators need one-time passwords to log in",
		Args:  cli.ExactArgs("ACCOUNT", "RULE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "optional" && args[1] != "required" {
				return cli.Usagef("the rule is optional or required, not %q", args[1])
			}

			return p.WithIdentity(cmd.Context(), func(s *identity.Service) error {
				if err := s.Credentials.RequireOTP(cmd.Context(), args[0], args[1] == "required"); err != nil {
					return fmt.Errorf("setting the login rule of account %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}
