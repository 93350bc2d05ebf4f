//go:build !man

package main

import (
	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

func manCommand(*cli.Program) []*cobra.Command { return nil }
