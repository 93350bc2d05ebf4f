package directory

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

// SigningKeyCommand returns the command signingkey with its subcommands.
func SigningKeyCommand(p *cli.Program) *cobra.Command {
	return cli.Group("signingkey", "The keys that sign tokens", signingkeyRotate(p))
}

func signingkeyRotate(p *cli.Program) *cobra.Command {
	var now bool
	command := runWithIdentity(p, &cobra.Command{
		Use:   "rotate [--now]",
		Short: "Create a key that signs tokens from now on, and print its id",
		Long: `Create a key that signs tokens from now on, and print its id. Running servers
follow within a second.

Without --now, tokens of the earlier keys stay valid until they expire. With it,
the earlier keys and all refresh tokens are deleted: everyone has to log in
again, and open sockets are closed with 4003. Use it when someone may have copied the
database and the master key.`,
		Args: cli.ExactArgs(),
	}, func(ctx context.Context, s *identity.Service, _ []string) error {
		id, err := s.Tokens.RotateSigningKey(ctx, now)
		if err != nil {
			return fmt.Errorf("rotating the signing key: %w", err)
		}
		_, err = fmt.Fprintln(p.Out, id)
		return err
	})

	command.Flags().BoolVar(&now, "now", false, "end every token and session")
	return command
}
