package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (p *program) configCommand() *cobra.Command {
	return group("config", "The settings", showSettings(&cobra.Command{
		Use:   "check",
		Short: "Check the settings and print what they come to, secrets masked",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			s, unknown, err := p.settingsAndUnknown()
			for _, name := range unknown {
				fmt.Fprintf(p.err, "trunkline: warning: %s is no setting\n", name)
			}
			if err != nil {
				return err
			}
			return s.Print(p.out)
		},
	}))
}
