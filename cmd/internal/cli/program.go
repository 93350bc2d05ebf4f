package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/settings"
)

// Exit codes of the process.
const (
	ExitOK     = 0
	ExitFailed = 1 // the same command may succeed later
	ExitUsage  = 2 // wrong command line, settings or data: correct them first
)

// Program is the process as commands see it: streams, environment and settings. Tests create
// their own.
type Program struct {
	In       io.Reader
	Out, Err io.Writer
	Env      []string // NAME=value

	name   string
	config string         // --config
	flags  *pflag.FlagSet // one flag for each setting
}

// Root builds the root command and registers --config and a flag for each
// setting.
func (p *Program) Root(name, short string, commands ...*cobra.Command) *cobra.Command {
	p.name = name
	root := Group(name, short, commands...)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageError(err) })
	p.flags = root.PersistentFlags()
	p.flags.StringVar(&p.config, "config", "", "YAML file with settings")
	settings.AddFlags(p.flags)
	// There is a flag for each of some hundred settings: ShowSettings shows them where they matter.
	p.flags.VisitAll(func(flag *pflag.Flag) { flag.Hidden = flag.Name != "config" && flag.Name != "data_dir" })
	root.SetGlobalNormalizationFunc(p.flags.GetNormalizeFunc())

	return root
}

// Run executes one command line and returns its exit code. It is the only place that prints
// errors, one line for each problem.
func (p *Program) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	err := root.ExecuteContext(audit.WithCaller(ctx, audit.CommandCaller()))
	if err == nil {
		return ExitOK
	}

	for line := range strings.SplitSeq(errorText(err), "\n") {
		p.Printf("%s", line)
	}

	var usage *commandLineError
	var problems setting.Problems
	if errors.As(err, &usage) || errors.As(err, &problems) || fault.IsPermanent(err) {
		return ExitUsage
	}

	return ExitFailed
}

// Printf writes one line to stderr, after the program's name.
func (p *Program) Printf(format string, args ...any) {
	fmt.Fprintf(p.Err, p.name+": "+format+"\n", args...)
}

// errorText returns the text of err, with the field errors that it does not contain yet.
func errorText(err error) string {
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

// Group returns a command that only has subcommands.
func Group(use, short string, members ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	command.AddCommand(members...)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		var names []string
		for _, member := range members {
			if !member.Hidden {
				names = append(names, member.Name())
			}
		}

		if len(args) > 0 {
			return commandErrorf(cmd, "has no command %q: want one of %s", args[0], strings.Join(names, ", "))
		}

		return commandErrorf(cmd, "needs a command, one of %s; see %s --help", strings.Join(names, ", "),
			cmd.CommandPath())
	}

	return command
}

// ShowSettings shows the flags of all settings in the command's help.
func ShowSettings(command *cobra.Command) *cobra.Command {
	help := command.HelpFunc()
	command.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(flag *pflag.Flag) { flag.Hidden = false })
		help(cmd, args)
	})
	return command
}
