package main

import (
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
)

// newEnv returns an Env with trunkline-bench and the commands that create its accounts.
func newEnv(t *testing.T) *clitest.Env {
	return clitest.New(t, "trunkline-bench", func(p *cli.Program) []*cobra.Command {
		return append(commands(p), directory.AccountCommand(p), directory.UserCommand(p), directory.APIKeyCommand(p))
	})
}
