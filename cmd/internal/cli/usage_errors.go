package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

type commandLineError struct{ err error }

func (u *commandLineError) Error() string { return u.err.Error() }

func (u *commandLineError) Unwrap() error { return u.err }

// UsageError marks err as a usage error: exit code ExitUsage.
func UsageError(err error) error { return &commandLineError{err} }

// Usagef formats a usage error.
func Usagef(format string, args ...any) error { return UsageError(fmt.Errorf(format, args...)) }

// commandErrorf returns a usage error that begins with the command's name. Run prints the
// program's name before it.
func commandErrorf(cmd *cobra.Command, format string, args ...any) error {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name())
	return Usagef("%s", strings.TrimSpace(path+" "+fmt.Sprintf(format, args...)))
}

// ExactArgs requires exactly the named arguments.
func ExactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return commandErrorf(cmd, "needs %s", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return commandErrorf(cmd, "does not take %q", args[len(names)])
		}
		return nil
	}
}

// AtMostOneArg allows one argument or none.
func AtMostOneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return commandErrorf(cmd, "does not take %q", args[1])
	}
	return nil
}

// RequireFlags requires a value for each of the flags.
func RequireFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Lookup(name).Value.String() == "" {
			return commandErrorf(cmd, "needs --%s", name)
		}
	}
	return nil
}
