package app

import (
	"context"
	"fmt"
	"os"

	"trunkline/identity"
)

// seedDirectory fills an empty directory from directory_file or, without one, with the demo
// account if demo_password is set.
func (a *App) seedDirectory(ctx context.Context) error {
	file := a.settings.DirectoryFile
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("directory_file: %w", err)
		}

		if err := a.identity.Directory.Seed(ctx, content); err != nil {
			return fmt.Errorf("directory_file %s: %w", file, err)
		}

		return nil
	}

	if a.settings.DemoPassword == "" {
		return nil
	}

	seeded, err := a.identity.Directory.SeedDemo(ctx, string(a.settings.DemoPassword))
	if err != nil {
		return fmt.Errorf("demo_password: creating the demo account: %w", err)
	}

	if seeded {
		a.log.Info("demo account created", "domain", "demo.local", "users", "admin, alice, bob")
	}

	return nil
}

// accountDirectory adapts the directory for the packages that ingest records.
type accountDirectory struct{ directory *identity.Directory }

// Exists reports whether an account exists. It also finds an account that was just created.
func (a accountDirectory) Exists(ctx context.Context, id string) (bool, error) {
	_, ok, err := a.directory.FindAccount(ctx, id)
	return ok, err
}

// MayIngestFor reports whether the caller may send records of the account.
func (a accountDirectory) MayIngestFor(caller *identity.Principal, accountID string) bool {
	return a.directory.Tree().Contains(caller.AccountID, accountID)
}

// identityConfig returns the configuration of the directory. The server's own names are
// those in the settings, the host's and those of its certificate.
func (a *App) identityConfig() identity.Config {
	var own []string
	name, err := os.Hostname()
	if err == nil {
		own = append(own, name)
	}

	if a.certificate != nil {
		pair, err := a.certificate.Get(nil)
		if err == nil && pair.Leaf != nil {
			own = append(own, pair.Leaf.DNSNames...)
		}
	}

	return identity.Config{
		Settings: a.settings.Auth, Accounts: a.settings.Account, ReservedDomains: a.settings.ReservedDomains(own...),
		PartitionOf: a.accountPartition,
	}
}
