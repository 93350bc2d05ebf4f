package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/config/settings"
	"trunkline/internal/fault"
)

// What the process exits with.
const (
	exitOK     = 0
	exitFailed = 1 // the same may succeed the next time
	exitUsage  = 2 // wrong usage, settings or data: somebody has to mend them first
)

// program is the world as the commands see it, so that a test can be it.
type program struct {
	in       io.Reader
	out, err io.Writer
	env      []string
	serve    func(context.Context, *settings.Settings, *slog.Logger) error

	config string         // --config
	flags  *pflag.FlagSet // a flag for every setting
}

// usageError is a command line that cannot be meant.
type usageError struct{ err error }

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// run executes one command line and gives the exit code. An error is told in
// one place, here: a line each for what is wrong.
func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(explain(err), "\n") {
		fmt.Fprintln(p.err, "trunkline: "+line)
	}
	var usage *usageError
	var problems settings.Problems
	if errors.As(err, &usage) || errors.As(err, &problems) || fault.IsLasting(err) {
		return exitUsage
	}
	return exitFailed
}

// explain is the error in words, with the fields that a fault blames.
func explain(err error) string {
	text := err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		for _, field := range f.Fields {
			if !strings.Contains(text, field.Message) {
				text += "; " + field.Field + ": " + field.Message
			}
		}
	}
	return text
}

func (p *program) root() *cobra.Command {
	root := group("trunkline", "Contact-center events in, Kafka, WebSocket out",
		p.serveCommand(), p.configCommand(), p.versionCommand(), p.healthCommand(),
		p.accountCommand(), p.userCommand(), p.apikeyCommand(),
		p.topicsCommand(), p.deadletterCommand(),
		p.masterkeyCommand(), p.recordingCommand(), p.cdrCommand(),
		p.listenCommand(), p.demoCommand(), p.benchCommand(),
		p.aiCommand(),
	)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	p.flags = root.PersistentFlags()
	p.flags.StringVar(&p.config, "config", "", "YAML file with settings")
	settings.AddFlags(p.flags)
	p.flags.VisitAll(func(flag *pflag.Flag) { flag.Hidden = flag.Name != "config" && flag.Name != "data_dir" })
	root.SetGlobalNormalizationFunc(p.flags.GetNormalizeFunc())
	return root
}

// group is a command that only holds others.
func group(use, short string, members ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	command.AddCommand(members...)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, member := range members {
			names = append(names, member.Name())
		}
		if len(args) > 0 {
			return usagef("%s has no command %q: want one of %s", cmd.CommandPath(), args[0], strings.Join(names, ", "))
		}
		return usagef("%s needs a command, one of %s; see %[1]s --help", cmd.CommandPath(), strings.Join(names, ", "))
	}
	return command
}

// showSettings shows the flags of all settings in the command's help.
func showSettings(command *cobra.Command) *cobra.Command {
	help := command.HelpFunc()
	command.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = false })
		help(cmd, args)
	})
	return command
}

// exactly refuses any other number of arguments than those named.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return usagef("%s does not take %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

// required refuses empty flags.
func required(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Lookup(name).Value.String() == "" {
			return usagef("%s needs --%s", cmd.CommandPath(), name)
		}
	}
	return nil
}
