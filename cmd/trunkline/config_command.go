package main

import (
	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

func configCommand(p *cli.Program) *cobra.Command {
	return cli.Group("config", "The settings", cli.ShowSettings(&cobra.Command{
		Use:   "check",
		Short: "Check the settings and print their effective values, secrets masked",
		Args:  cli.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			s, unknown, err := p.SettingsAndUnknown()
			for _, name := range unknown {
				p.Printf("warning: %s is not a setting", name)
			}

			if err != nil {
				return err
			}

			return s.Print(p.Out)
		},
	}))
}
