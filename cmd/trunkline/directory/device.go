package directory

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/identity"
)

func deviceCommand(p *cli.Program) *cobra.Command {
	return cli.Group("device", "Passwords of the phones of a user", deviceCreate(p), deviceList(p), deviceDelete(p))
}

func deviceCreate(p *cli.Program) *cobra.Command {
	var name string
	command := runOnUser(p, &cobra.Command{
		Use:   "create USERNAME --account ACCOUNT",
		Short: "Create a password for a phone and print it: it is not shown again",
		Long: `Create a password for a phone of a user and print it: it is not shown again. The
phone registers with the user's extension as user name. The password is not
valid at the portal, and is valid as long as the user keeps the extension.`,
	}, func(ctx context.Context, s *identity.Service, account, username string) error {
		password, _, err := s.Directory.CreateDevice(ctx, account, username, name)
		if err != nil {
			return fmt.Errorf("creating a device of %s: %w", username, err)
		}
		_, err = fmt.Fprintln(p.Out, password)
		return err
	})

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
	command := &cobra.Command{Use: "list USERNAME --account ACCOUNT", Short: "List the devices of a user"}
	asJSON := cli.JSONListFlag(command.Flags())
	return runOnUser(p, command,
		func(ctx context.Context, s *identity.Service, account, username string) error {
			devices, err := s.Directory.ListDevices(ctx, account, username)
			if err != nil {
				return fmt.Errorf("listing the devices of %s: %w", username, err)
			}

			rows := mapSlice(devices,
				func(d identity.Device) deviceRow { return deviceRow{d.ID, d.UserID, d.Name, d.CreatedAt.Unix()} })
			return cli.List(p.Out, *asJSON, rows, []string{"ID", "NAME", "CREATED"}, func(d deviceRow) []string {
				return []string{d.ID, cli.OrDash(d.Name), formatDay(d.CreatedAt)}
			})
		})
}

func deviceDelete(p *cli.Program) *cobra.Command {
	return runWithIdentity(p, &cobra.Command{
		Use:   "delete ID",
		Short: "End the password of a device; a registration lasts until it expires",
		Args:  cli.ExactArgs("ID"),
	}, func(ctx context.Context, s *identity.Service, args []string) error {
		if err := s.Directory.DeleteDevice(ctx, args[0]); err != nil {
			return fmt.Errorf("deleting device %s: %w", args[0], err)
		}
		return nil
	})
}
