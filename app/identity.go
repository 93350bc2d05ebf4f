package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"

	"trunkline/identity"
)

// seed fills an empty directory: from the file that the settings name, else,
// on the embedded database, with the demo account.
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
	if a.db.Postgres() {
		return nil
	}
	password := string(a.settings.DemoPassword)
	made := password == ""
	if made {
		password = rand.Text()
	}
	seeded, err := a.identity.SeedDemo(ctx, password)
	if err != nil {
		return fmt.Errorf("making the demo account: %w", err)
	}
	if seeded && made {
		// On the terminal only, this once; it is a demo account's.
		_, _ = fmt.Fprintf(os.Stderr, "\ndemo account made: users admin, alice and bob of domain demo.local, password %s\n\n", password)
	}
	return nil
}

// accounts adapts the directory for the packages that take records in.
type accounts struct{ identity *identity.Service }

// Exists reports whether an account is there, also one made a moment ago.
func (a accounts) Exists(ctx context.Context, id string) (bool, error) {
	_, ok, err := a.identity.Lookup(ctx, id)
	return ok, err
}

// MayName reports whether the caller may send records of the account.
func (a accounts) MayName(caller *identity.Principal, accountID string) bool {
	return a.identity.Tree().Contains(caller.AccountID, accountID)
}
