// Package audit has the command on the audit log.
package audit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/audit"
	"trunkline/cmd/internal/cli"
)

// Command returns the command audit with its subcommands.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("audit", "The audit log", verify(p))
}

func verify(p *cli.Program) *cobra.Command {
	var head string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Check that no entry of the audit log was changed or is missing",
		Long: `Check the hash of every entry of the audit log, with or without a running server.
The exit code is 0 when all are as they were written; otherwise 1, and the first
entry that was changed or is missing is printed. Entries that were deleted when their
retention ended are not missing.

The chain has no secret: an attacker who can write to the database can recompute it.
--head compares it with a head that was noted elsewhere: the server logs one a
minute (msg="audit chain"), and this command prints the current one. A head that was
deleted since is an error, unless the log has the entry that says that its retention
ended.`,
		Args: cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := parseHead(head)
			if err != nil {
				return err
			}

			return p.WithAudit(cmd.Context(), func(log *audit.Log) error {
				v, err := log.Verify(cmd.Context(), known, p.Progress("entries checked").Report)
				var broken *audit.BrokenError
				var pruned *audit.PrunedError
				if errors.As(err, &broken) || errors.As(err, &pruned) {
					return fmt.Errorf("the audit log is not as it was written: %w", err)
				}
				if err != nil {
					return err
				}

				_, err = fmt.Fprintf(p.Out,
					"entries %d to %d are as they were written, %d are not chained yet\nhead %d:%s\n",
					v.First, v.Last, v.Pending, v.Last, v.Hash)
				// No error: versions before the entry existed deleted without one.
				if v.Unrecorded > 0 && err == nil {
					_, err = fmt.Fprintf(p.Out,
						"entries up to %d were deleted, and no entry of the log says that retention ended: compare with --head\n",
						v.Unrecorded)
				}

				return err
			})
		},
	}

	command.Flags().StringVar(&head, "head", "", "a head noted earlier, SEQ:HASH")
	return command
}

// parseHead reads SEQ:HASH.
func parseHead(text string) (known audit.KnownHead, err error) {
	if text == "" {
		return audit.KnownHead{}, nil
	}

	seq, hash, _ := strings.Cut(text, ":")
	known.Hash = hash
	known.Seq, err = strconv.ParseInt(seq, 10, 64)
	if err != nil || known.Seq < 1 || len(hash) != 64 {
		return audit.KnownHead{}, cli.Usagef("--head is SEQ:HASH, as audit verify prints it")
	}

	return known, nil
}
