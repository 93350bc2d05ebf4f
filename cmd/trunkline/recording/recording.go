// Package recording has the commands on sealed recordings, offline and in the store.
package recording

import (
	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// Command returns the command recording with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("recording",
		"Recordings: send a switch's, open sealed ones offline, or move the service's to the newest key",
		recordingOpen(p), recordingSeal(p), recordingInspect(p), recordingReseal(p), recordingSend(p))
}

// fileUsage is the help text on FILE of all commands.
const fileUsage = "\n\nFILE may be - for stdin."
