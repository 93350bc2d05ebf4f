// Package cdr has the commands on call records.
package cdr

import (
	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// Command returns the command cdr with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("cdr", "The call records", cdrFind(p), cdrExport(p), cdrImport(p), cdrReindex(p))
}
