//go:build man

package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"trunkline/cmd/internal/cli"
)

// manCommand returns the command that writes the man pages of all commands into a folder. It is part
// of the build that makes them, not of the released program.
func manCommand(*cli.Program) []*cobra.Command {
	return []*cobra.Command{{
		Use:    "man DIR",
		Short:  "Write the man pages",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
			if err != nil {
				return err
			}

			date := time.Unix(seconds, 0).UTC()

			c.Root().DisableAutoGenTag = true
			return doc.GenManTree(c.Root(), &doc.GenManHeader{Source: "trunkline", Manual: "Trunkline", Date: &date},
				args[0])
		},
	}}
}
