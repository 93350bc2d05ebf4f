package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
	"trunkline/config/encryption"
	"trunkline/config/settings"
)

// openSecrets opens the master keys and the packages whose secrets they seal.
func (a *App) openSecrets(ctx context.Context) error {
	var err error
	if a.keys, err = backend.MasterKeys(a.settings); err != nil {
		return fmt.Errorf("master keys: %w", err)
	}
	if err := a.openProviders(ctx); err != nil {
		return err
	}
	if !a.has(settings.RoleAPI) {
		return nil
	}
	if a.configs, err = encryption.New(ctx, a.db, a.keys, a.registry); err != nil {
		return fmt.Errorf("recording encryption: %w", err)
	}
	return nil
}

// requirePhones refuses to start without the master key that the phones'
// passwords are sealed under, as the packages of openSecrets do for theirs.
func (a *App) requirePhones(ctx context.Context) error {
	if !a.has(settings.RoleAPI) && !a.has(settings.RoleOrigination) {
		return nil
	}
	return a.identity.Secrets().Require(ctx)
}

// haveMasterKey makes the first master key where this process alone has the
// database. It runs after every package has found that no key is lost.
func (a *App) haveMasterKey() error {
	if !a.has(settings.RoleAPI) {
		return nil
	}
	if a.db.Postgres() {
		if _, err := a.keys.Newest(); err != nil {
			// Keys made here would be unknown to the other nodes.
			a.log.Warn("no master key: encryption of recordings cannot be configured; set master_key, the same on every node", "error", err)
		}
		return nil
	}
	if file := a.settings.MasterKeyFile; file != "" {
		// Whoever names a file has one: a new key in its place would be a mistake.
		if _, err := a.keys.Newest(); err != nil {
			return fmt.Errorf("master_key_file %s: %w", file, err)
		}
		return nil
	}
	made, err := a.keys.Create()
	if err != nil {
		return err
	}
	if made {
		a.log.Info("master key created: without this file the accounts' keys are lost, keep a copy elsewhere",
			"file", backend.MasterKeyFile(a.settings))
	}
	return nil
}
