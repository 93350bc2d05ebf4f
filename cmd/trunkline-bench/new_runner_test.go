package main

import (
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
)

// newRunner returns a Runner of trunkline-bench and the commands that create its accounts.
func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline-bench", func(p *cli.Program) []*cobra.Command {
		return append(commands(p), directory.AccountCommand(p), directory.UserCommand(p), directory.APIKeyCommand(p))
	})
}
