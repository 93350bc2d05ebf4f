package call

import (
	"net/url"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/savedlogin"
)

// actionCommands returns the commands that act on a call of a platform.
func actionCommands(p *cli.Program) []*cobra.Command {
	actions := []struct{ action, short string }{
		{"hangup", "End a call"},
		{"transfer", "Send the caller of a call to another destination"},
		{"hold", "Put a call on hold"},
		{"resume", "Take a call off hold"},
		{"listen", "Ring your phone, and hear a call when you answer"},
		{"whisper", "As listen, and the agent hears you"},
		{"barge", "As listen, and both parties hear you"},
	}
	var commands []*cobra.Command

	for _, c := range actions {
		use, arguments := c.action+" CALL", []string{"CALL"}
		if c.action == "transfer" {
			use, arguments = use+" DESTINATION", append(arguments, "DESTINATION")
		}

		commands = append(commands,
			savedlogin.WithAccount(p, &cobra.Command{Use: use, Short: c.short, Args: cli.ExactArgs(arguments...)},
				func(cmd *cobra.Command, s *savedlogin.Session, args []string) error {
					body := map[string]string{"action": c.action}
					if c.action == "transfer" {
						body["destination"] = args[1]
					}
					return s.Act(cmd.Context(), p, "/api/v2/calls/"+url.PathEscape(args[0])+"/actions", body)
				}))
	}

	return commands
}
