package app

import (
	"context"
	"fmt"
	"os"

	"trunkline/identity"
)

// seed fills an empty directory: from the configured file, else, if demo_password is
// set, with the demo account.
func (a *App) seed(ctx context.Context) error {
	if file := a.settings.DirectoryFile; file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("directory_file: %w", err)
		}
		if err := a.identity.Seed(ctx, content); err != nil {
			return fmt.Errorf("directory_file %s: %w", file, err)
		}
		return nil
	}
	if a.settings.DemoPassword == "" {
		return nil
	}
	seeded, err := a.identity.SeedDemo(ctx, string(a.settings.DemoPassword))
	if err != nil {
		return fmt.Errorf("demo_password: creating the demo account: %w", err)
	}
	if seeded {
		a.log.Info("demo account created", "domain", "demo.local", "users", "admin, alice, bob")
	}
	return nil
}

// accounts adapts the directory for the packages that ingest records.
type accounts struct{ identity *identity.Service }

// Exists reports whether an account exists, also one created a moment ago.
func (a accounts) Exists(ctx context.Context, id string) (bool, error) {
	_, ok, err := a.identity.FindAccount(ctx, id)
	return ok, err
}

// MayName reports whether the caller may send records of the account.
func (a accounts) MayName(caller *identity.Principal, accountID string) bool {
	return a.identity.Tree().Contains(caller.AccountID, accountID)
}
