// Package ai has the commands ai check, which tests an AI provider, and ai echo, which runs a
// provider that returns the audio.
package ai

import (
	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// Command returns the command ai with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("ai", "Run and check AI providers", aiEcho(p), aiCheck(p))
}
