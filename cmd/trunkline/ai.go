package main

import "github.com/spf13/cobra"

func (p *program) aiCommand() *cobra.Command {
	return group("ai", "Tools for those who make AI providers", p.aiEcho(), p.aiCheck())
}
