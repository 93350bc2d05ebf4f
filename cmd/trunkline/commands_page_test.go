package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/internal/cli"
)

var update = flag.Bool("update", false, "write docs/commands.md")

const commandsPage = "../../docs/commands.md"

// TestCommandsPage compares docs/commands.md with the help of every command; -update writes it.
func TestCommandsPage(t *testing.T) {
	p := &cli.Program{}
	root := p.Root("trunkline", "", commands(p, nil)...)
	root.InitDefaultCompletionCmd()
	want := commandsReference(root)

	if *update {
		if err := os.WriteFile(commandsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}

	if string(got) != want {
		t.Fatal("docs/commands.md is not what the commands' help says (go test ./cmd/trunkline -run CommandsPage -update writes the page)")
	}
}

// commandsReference returns docs/commands.md: a section for each command, a part of it for each subcommand.
func commandsReference(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString(
		"# Commands\n\nGenerated from the commands' help by `go test ./cmd/trunkline -run CommandsPage -update`. " +
			"[cli.md](cli.md) shows the commands for users at work, [operations.md](operations.md) those for operators. " +
			"`trunkline COMMAND --help` prints the same.\n\n" +
			"Every command takes `--config` and a flag for each of the [settings](settings.md); `login`, `logout`, `listen`, `call`, `cdr find`, " +
			"`cdr export`, `agent`, `explain` and `webhook` reach the server that `trunkline login` named, the others work on the backends of the settings. " +
			"Exit codes: [messages.md](messages.md#exit-codes).\n\n| command | does |\n|---|---|\n")

	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", c.Name(), strings.ReplaceAll(c.CommandPath(), " ", "-"),
				tableCell(c.Short))
		}
	}

	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			writeCommand(&page, c, "##")
		}
	}

	return page.String()
}

func writeCommand(page *strings.Builder, c *cobra.Command, heading string) {
	fmt.Fprintf(page, "\n%s %s\n", heading, c.CommandPath())
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}

	fmt.Fprintf(page, "\n%s\n", strings.TrimSpace(text))
	if !c.HasAvailableSubCommands() {
		fmt.Fprintf(page, "\n`%s %s`\n", c.Root().Name(),
			strings.TrimSuffix(strings.TrimPrefix(c.UseLine(), c.Root().Name()+" "), " [flags]"))
	}
	if c.Example != "" {
		fmt.Fprintf(page, "\n<!-- example: not run, from the command's help -->\n```\n%s\n```\n",
			strings.Trim(c.Example, "\n"))
	}
	if flags := flagRows(c); flags != "" {
		fmt.Fprintf(page, "\n| flag | |\n|---|---|\n%s", flags)
	}

	for _, member := range c.Commands() {
		if member.IsAvailableCommand() && c.Name() != "completion" {
			writeCommand(page, member, "###")
		}
	}
}

func flagRows(c *cobra.Command) string {
	var rows strings.Builder
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}

		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			kind = " " + kind
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += fmt.Sprintf(" (%s)", f.DefValue)
		}

		fmt.Fprintf(&rows, "| `--%s%s` | %s |\n", f.Name, kind, tableCell(usage))
	})

	return rows.String()
}

func tableCell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text)
}
