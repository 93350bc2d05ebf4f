// Package masterkey has the command that rotates the master key.
package masterkey

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
	"trunkline/internal/masterkey"
)

// Command returns the command masterkey with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("masterkey", "The keys that seal secrets in the database", masterkeyRotate(p))
}

func masterkeyRotate(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Create the next master key and seal every secret under it",
		Long: `Create the next master key, seal every secret in the database under it, and remove
the old keys from the key file. Running servers read the new key. If the command
is interrupted, run it again: it continues.

If the keys are in the setting master_key, append the new key on every node,
restart the nodes, then run this command: it seals everything under the last key.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.WithStores(cmd.Context(), func(stores cli.Stores) error {
				progress := p.Progress("secrets resealed")
				secrets := append(identity.Secrets(stores.DB, stores.Keys), stores.Encryption.Secrets(),
					stores.Providers.Secrets(),
					stores.Webhooks.Secrets())
				done, err := masterkey.Rotate(cmd.Context(), stores.Keys, secrets, progress.Report)
				if err != nil {
					return fmt.Errorf("rotating the master key: %w", err)
				}

				text := "everything is sealed under master key %s\n"
				if done.Resumed {
					text = "an interrupted rotation is finished: " + text
				}

				_, err = fmt.Fprintf(p.Out, text, done.KeyID)
				return err
			})
		},
	}
}
