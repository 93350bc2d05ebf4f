// Package feed has the commands on live feeds.
package feed

import (
	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// Command returns the group of commands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("feed", "The live feeds of phone platforms", list(p), check(p))
}
