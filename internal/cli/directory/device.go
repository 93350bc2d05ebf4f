package directory

import (
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/identity"
	"trunkline/internal/cli"
)

func deviceCommand(p *cli.Program) *cobra.Command {
	return cli.Group("device", "Passwords of the phones of a user", deviceCreate(p), deviceList(p), deviceDelete(p))
}

func deviceCreate(p *cli.Program) *cobra.Command {
	var account, name string
	command := &cobra.Command{
		Use:   "create USERNAME --account ACCOUNT",
		Short: "Make a password for a phone and print it: it is not shown again",
		Long: `Make a password for a phone of a user and print it: it is not shown again. The
phone registers with the user's extension as user name. The password is of no
use at the portal, and is valid as long as the user keeps the extension.`,
		Args: cli.ExactArgs("USERNAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				password, _, err := directory.CreateDevice(cmd.Context(), account, args[0], name)
				if err != nil {
					return fmt.Errorf("creating a device of %s: %w", args[0], err)
				}
				_, err = fmt.Fprintln(p.Out, password)
				return err
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", cli.AccountUsage)
	command.Flags().StringVar(&name, "name", "", "name of the phone")
	return command
}

// deviceRow is a device as --json shows it.
type deviceRow struct {
	ID        string `json:"id"`
	UserID    string `json:"user_id"`
	Name      string `json:"name,omitempty"`
	CreatedAt int64  `json:"created_at"`
}

func deviceList(p *cli.Program) *cobra.Command {
	var account string
	var asJSON bool
	command := &cobra.Command{
		Use:   "list USERNAME --account ACCOUNT",
		Short: "List the devices of a user",
		Args:  cli.ExactArgs("USERNAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.RequireFlags(cmd, "account"); err != nil {
				return err
			}
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				devices, err := directory.Devices(cmd.Context(), account, args[0])
				if err != nil {
					return fmt.Errorf("listing the devices of %s: %w", args[0], err)
				}
				list := make([]deviceRow, len(devices))
				rows := make([][]string, len(devices))
				for i, d := range devices {
					list[i] = deviceRow{d.ID, d.UserID, d.Name, d.CreatedAt.Unix()}
					rows[i] = []string{d.ID, cli.OrDash(d.Name), day(d.CreatedAt)}
				}
				if asJSON {
					return cli.JSONLine(p.Out, list)
				}
				return cli.Table(p.Out, []string{"ID", "NAME", "CREATED"}, rows)
			})
		},
	}
	command.Flags().StringVar(&account, "account", "", cli.AccountUsage)
	command.Flags().BoolVar(&asJSON, "json", false, "as one JSON array")
	return command
}

func deviceDelete(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "End the password of a device; a registration lasts until it expires",
		Args:  cli.ExactArgs("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.WithDirectory(cmd.Context(), func(directory *identity.Service) error {
				if err := directory.DeleteDevice(cmd.Context(), args[0]); err != nil {
					return fmt.Errorf("deleting device %s: %w", args[0], err)
				}
				return nil
			})
		},
	}
}
