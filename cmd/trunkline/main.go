// Command trunkline is the server in any role, the commands that manage it, and
// command-line clients of it. The management commands are in internal/cli.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"trunkline/internal/cli"
	"trunkline/internal/cli/ai"
	"trunkline/internal/cli/audit"
	"trunkline/internal/cli/call"
	"trunkline/internal/cli/cdr"
	"trunkline/internal/cli/deadletter"
	"trunkline/internal/cli/demo"
	"trunkline/internal/cli/directory"
	"trunkline/internal/cli/explain"
	"trunkline/internal/cli/feed"
	"trunkline/internal/cli/listen"
	"trunkline/internal/cli/masterkey"
	"trunkline/internal/cli/portal"
	"trunkline/internal/cli/recording"
	"trunkline/internal/cli/stats"
	"trunkline/internal/cli/topics"
	"trunkline/internal/cli/webhook"
)

func main() {
	p := &cli.Program{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.Environ()}
	root := p.Root("trunkline", "Receive contact-center events, store them on Kafka, and push them over WebSocket and SSE", commands(p, serve)...)
	os.Exit(p.Run(cli.SignalContext(), root, os.Args[1:]))
}

func commands(p *cli.Program, serve runServer) []*cobra.Command {
	return []*cobra.Command{
		serveCommand(p, serve), configCommand(p), versionCommand(p), healthCommand(p),
		directory.AccountCommand(p), directory.UserCommand(p), directory.APIKeyCommand(p),
		topics.Command(p), feed.Command(p), deadletter.Command(p),
		masterkey.Command(p), audit.Command(p), directory.SigningKeyCommand(p), recording.Command(p), cdr.Command(p), stats.Command(p),
		portal.LoginCommand(p), portal.LogoutCommand(p), listen.Command(p), call.Command(p), explain.Command(p), webhook.Command(p), demo.Command(p),
		ai.Command(p),
	}
}
