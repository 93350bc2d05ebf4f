package app

import (
	"context"
	"fmt"
	"os"

	"trunkline/identity"
)

// openIdentity opens the directory, and what logins at this process need.
func openIdentity(ctx context.Context, b *base) (*identity.Service, error) {
	service, err := identity.New(ctx, identityConfig(b), b.db, b.keys, b.limiter, b.audit, b.registry, b.log)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}

	if err := requireIdentitySecrets(ctx, b); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	if err := ensureMasterKey(b); err != nil {
		return nil, fmt.Errorf("master keys: %w", err)
	}
	if err := prepareSigning(ctx, b, service.Tokens); err != nil {
		return nil, fmt.Errorf("signing keys: %w", err)
	}

	b.lifecycle.addRunAtOnce("identity", service.Run)
	return service, seedDirectory(ctx, b, service.Directory)
}

// seedDirectory fills an empty directory from directory_file or, without one, with the demo
// account if demo_password is set.
func seedDirectory(ctx context.Context, b *base, directory *identity.Directory) error {
	file := b.settings.DirectoryFile
	if file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("directory_file: %w", err)
		}

		if err := directory.Seed(ctx, content); err != nil {
			return fmt.Errorf("directory_file %s: %w", file, err)
		}

		return nil
	}

	if b.settings.DemoPassword == "" {
		return nil
	}

	seeded, err := directory.SeedDemo(ctx, string(b.settings.DemoPassword))
	if err != nil {
		return fmt.Errorf("demo_password: creating the demo account: %w", err)
	}

	if seeded {
		b.log.Info("demo account created", "domain", "demo.local", "users", "admin, alice, bob")
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
func identityConfig(b *base) identity.Config {
	var own []string
	name, err := os.Hostname()
	if err == nil {
		own = append(own, name)
	}

	if b.certificate != nil {
		pair, err := b.certificate.Get(nil)
		if err == nil && pair.Leaf != nil {
			own = append(own, pair.Leaf.DNSNames...)
		}
	}

	return identity.Config{
		Settings: b.settings.Auth, Accounts: b.settings.Account, ReservedDomains: b.settings.ReservedDomains(own...),
		PartitionOf: b.accountPartition,
	}
}
