package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
	"trunkline/config/encryption"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/settings"
)

// openSecrets opens the master keys and the packages with secrets sealed under them.
func (a *App) openSecrets(ctx context.Context) error {
	var err error
	a.keys, err = backend.MasterKeys(a.settings)
	if err != nil {
		return fmt.Errorf("master keys: %w", err)
	}

	if err := a.openProviders(ctx); err != nil {
		return err
	}
	if !a.handlesCalls() {
		return nil
	}

	a.encryption, err = encryption.New(ctx, a.db, a.keys, a.audit, a.registry)
	if err != nil {
		return fmt.Errorf("recording encryption: %w", err)
	}

	if !a.hasRole(settings.RoleAPI) {
		return nil
	}

	return a.openWebhooks(ctx)
}

// hasLogins reports whether users log in at this process, so that it signs tokens.
func (a *App) hasLogins() bool { return a.hasRole(settings.RoleAPI) || a.hasRole(settings.RoleFanout) }

// requireIdentitySecrets returns an error if the master key that seals the signing keys and the
// phones' passwords is missing. The packages of openSecrets check theirs themselves.
func (a *App) requireIdentitySecrets(ctx context.Context) error {
	if !a.hasLogins() && !a.hasRole(settings.RoleOrigination) {
		return nil
	}
	return identity.RequireSecrets(ctx, a.db, a.keys)
}

// prepareSigning prepares the keys that sign tokens, if users log in at this process. It returns
// an error if there is no master key to seal them.
func (a *App) prepareSigning(ctx context.Context) error {
	if !a.hasLogins() {
		return nil
	}

	_, err := a.keys.NewestID()
	if err != nil {
		return fault.Permanent(
			fmt.Errorf("the roles %s and %s need a master key, which seals the keys that sign tokens: "+
				"set TRUNKLINE_MASTER_KEY or master_key_file, the same on every node: %w", settings.RoleAPI,
				settings.RoleFanout, err))
	}

	return a.identity.Tokens.PrepareSigning(ctx)
}

// ensureMasterKey creates the first master key if this process is the only user of the
// database. It runs after every package has checked that no key is missing.
func (a *App) ensureMasterKey() error {
	if !a.hasLogins() || a.db.Postgres() { // the other nodes would not have a key created here
		return nil
	}

	file := a.settings.MasterKeys.File
	if file != "" {
		// A configured file without a key is an error: a new key would hide the mistake.
		_, err := a.keys.NewestID()
		if err != nil {
			return fmt.Errorf("master_key_file %s: %w", file, err)
		}
		return nil
	}

	created, err := a.keys.Create()
	if err != nil {
		return err
	}

	if created {
		a.log.Info("master key created: without this file the accounts' keys are lost, keep a copy elsewhere",
			"file", backend.MasterKeyFile(a.settings))
	}

	return nil
}
