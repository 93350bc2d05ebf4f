// Command trunkline is the server in any role, the commands that manage it, and
// command-line clients of it. The commands of each subject are in a folder below it.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline/agent"
	"trunkline/cmd/trunkline/ai"
	"trunkline/cmd/trunkline/alert"
	"trunkline/cmd/trunkline/audit"
	"trunkline/cmd/trunkline/call"
	"trunkline/cmd/trunkline/cdr"
	"trunkline/cmd/trunkline/deadletter"
	"trunkline/cmd/trunkline/demo"
	"trunkline/cmd/trunkline/directory"
	"trunkline/cmd/trunkline/explain"
	"trunkline/cmd/trunkline/feed"
	"trunkline/cmd/trunkline/listen"
	"trunkline/cmd/trunkline/masterkey"
	"trunkline/cmd/trunkline/privacy"
	"trunkline/cmd/trunkline/recording"
	"trunkline/cmd/trunkline/savedlogin"
	"trunkline/cmd/trunkline/stats"
	"trunkline/cmd/trunkline/topics"
	"trunkline/cmd/trunkline/webhook"
)

func main() {
	p := &cli.Program{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
	root := p.Root("trunkline",
		"Receive contact-center events, store them on Kafka, and push them over WebSocket and SSE",
		commands(p, serve)...)
	os.Exit(p.Run(cli.SignalContext(), root, os.Args[1:]))
}

func commands(p *cli.Program, serve runServer) []*cobra.Command {
	return append(manCommand(p),
		serveCommand(p, serve), configCommand(p), versionCommand(p), healthCommand(p),
		directory.AccountCommand(p), directory.UserCommand(p), directory.APIKeyCommand(p),
		topics.Command(p), feed.Command(p), deadletter.Command(p),
		masterkey.Command(p), audit.Command(p), directory.SigningKeyCommand(p), recording.Command(p),
		privacy.Command(p), cdr.Command(p), stats.Command(p),
		savedlogin.LoginCommand(p), savedlogin.LogoutCommand(p), listen.Command(p), call.Command(p), agent.Command(p),
		alert.Command(p), explain.Command(p), webhook.Command(p), demo.Command(p),
		ai.Command(p))
}
