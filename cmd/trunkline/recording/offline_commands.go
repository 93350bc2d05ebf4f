package recording

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/config/encryption"
	"trunkline/recording"
)

const outputUsage = "file to write, atomically; empty: stdout"

func recordingOpen(p *cli.Program) *cobra.Command {
	var keys keyFlags
	var output string
	command := &cobra.Command{
		Use:   "open FILE",
		Short: "Open a sealed recording with its key and salt alone, and write its audio",
		Long: `Open a sealed recording with its key and salt alone, and write its audio.

"recording inspect" prints the version of the account's key that is needed. Audio on
stdout is authenticated, but it is complete only if the exit code is 0.` + fileUsage,
		Args: cli.ExactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			keyAndSalt, err := keys.read(p)
			if err != nil {
				return err
			}

			return inputToOutput(p, "opening", args[0], output, func(w io.Writer, r io.Reader) error {
				_, err := keyAndSalt.Open(w, r)
				return err
			})
		},
	}

	keys.register(command.Flags())
	command.Flags().StringVar(&output, "output", "", outputUsage)
	return command
}

func recordingSeal(p *cli.Program) *cobra.Command {
	var keys keyFlags
	var output string
	var header recording.SealParams
	command := &cobra.Command{
		Use:   "seal FILE --account ID --recording ID",
		Short: "Seal audio as the service does",
		Long:  "Seal audio as the service does." + fileUsage,
		Args:  cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.RequireFlags(cmd, "account", "recording"); err != nil {
				return err
			}

			keyAndSalt, err := keys.read(p)
			if err != nil {
				return err
			}

			header.Created = time.Now()
			if header.KeyID == "" {
				header.KeyID = encryption.KeyID(header.AccountID)
			}

			return inputToOutput(p, "sealing", args[0], output, func(w io.Writer, r io.Reader) error {
				_, err := keyAndSalt.Seal(w, r, header)
				return err
			})
		},
	}

	keys.register(command.Flags())
	flags := command.Flags()
	flags.StringVar(&output, "output", "", outputUsage)
	flags.StringVar(&header.AccountID, "account", "", "id of the account it belongs to")
	flags.StringVar(&header.RecordingID, "recording", "", "its id")
	flags.StringVar(&header.Algorithm, "algorithm", encryption.AES256GCM,
		encryption.AES256GCM+" or "+encryption.AES256CBC)
	flags.StringVar(&header.ContentType, "content-type", "audio/x-wav", "content type of the audio")
	flags.StringVar(&header.KeyID, "key-id", "", "id of the key; empty: the account's")
	flags.Uint32Var(&header.KeyVersion, "key-version", 1, "version of the key")

	return command
}

func recordingInspect(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect FILE",
		Short: "Print the header of a sealed recording as JSON; without a key it is not verified",
		Long:  "Print the header of a sealed recording as JSON. Without a key it is not verified." + fileUsage,
		Args:  cli.ExactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := openInput(p, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }() // opened for reading

			header, err := recording.Inspect(in)
			if err != nil {
				return fmt.Errorf("inspecting %s: %w", args[0], err)
			}

			return cli.JSONLine(p.Out, header)
		},
	}
}
