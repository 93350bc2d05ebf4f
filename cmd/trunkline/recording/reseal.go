package recording

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/recording"
)

// resealFlags holds the flags for recordings in the store and for a file.
type resealFlags struct {
	account      string
	old, new     keyFlags
	newKeyID     string
	newVersion   uint32
	output, file string
}

func recordingReseal(p *cli.Program) *cobra.Command {
	options := resealFlags{new: keyFlags{prefix: "new-"}}
	command := &cobra.Command{
		Use:   "reseal [FILE]",
		Short: "Move the service's sealed recordings to their accounts' newest keys, or one file to another key",
		Long: `Without FILE: move every sealed recording of the service, or of one account, to
the newest key and the algorithm of the account's current configuration.
Servers may run meanwhile. If it is interrupted, run it again: it continues with
the remaining recordings. Plain recordings stay plain.

With FILE: move one sealed recording to another key offline, with both keys and
salts. Its body stays as it is.` + fileUsage,
		Args: cli.AtMostOneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return resealStored(p, cmd.Context(), options.account)
			case options.account != "":
				return cli.Usagef("--account is for the service's recordings, not for a file")
			}

			options.file = args[0]
			return resealFile(p, &options)
		},
	}

	flags := command.Flags()
	flags.StringVar(&options.account, "account", "", cli.AccountUsage+"; empty: all")
	options.old.register(flags)
	options.new.register(flags)
	flags.StringVar(&options.newKeyID, "new-key-id", "", "id of the new key; empty: the old one's")
	flags.Uint32Var(&options.newVersion, "new-key-version", 0, "version of the new key; 0: the one after the old one's")
	flags.StringVar(&options.output, "output", "", outputUsage)

	return command
}

func resealFile(p *cli.Program, options *resealFlags) error {
	from, err := options.old.read(p)
	if err != nil {
		return err
	}

	to, err := options.new.read(p)
	if err != nil {
		return err
	}

	return inputToOutput(p, "resealing", options.file, options.output, func(w io.Writer, r io.Reader) error {
		_, err := from.Reseal(w, r, to, options.newKeyID, options.newVersion)
		return err
	})
}

func resealStored(p *cli.Program, ctx context.Context, account string) error {
	return p.WithStores(ctx, func(stores cli.Stores) (err error) {
		account, err = accountID(stores.Identity.Directory, account)
		if err != nil {
			return err
		}

		store, closeStore, err := backend.Recordings(stores.Settings, p.ToolLog())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeStore()) }()

		recordings, err := recording.New(ctx, recording.Settings{}, recording.Deps{
			DB: stores.DB, Store: store, Keys: stores.Encryption, Audit: stores.Audit,
			Metrics: prometheus.NewRegistry(), Log: p.ToolLog(),
		})
		if err != nil {
			return err
		}

		progress := p.Progress("recordings")
		done, err := recordings.Reseal(ctx, account, func(resealed recording.Progress) {
			progress.Report(resealed.Done+resealed.Failed, resealed.Total)
		})
		if err != nil {
			return fmt.Errorf("after %d of %d recordings: %w", done.Done+done.Failed, done.Total, err)
		}

		_, err = fmt.Fprintf(p.Out, "%d recordings moved to the newest key\n", done.Done)
		return err
	})
}

// accountID resolves a reference to an account; "" stays "".
func accountID(directory *identity.Directory, ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	account, ok := directory.Tree().Resolve(ref)
	if !ok {
		return "", fault.NotFound("there is no account %s", ref)
	}
	return account.ID, nil
}
