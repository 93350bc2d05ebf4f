package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/settings"
)

// requireIdentitySecrets returns an error if the master key that seals the signing keys and the
// phones' passwords is missing. The packages of openSealedStores check theirs themselves.
func requireIdentitySecrets(ctx context.Context, b *base) error {
	if !b.hasLogins() && !b.hasRole(settings.RoleOrigination) {
		return nil
	}
	return identity.RequireSecrets(ctx, b.db, b.keys)
}

// prepareSigning prepares the keys that sign tokens, if users log in at this process. It returns
// an error if there is no master key to seal them.
func prepareSigning(ctx context.Context, b *base, tokens *identity.Tokens) error {
	if !b.hasLogins() {
		return nil
	}

	_, err := b.keys.NewestID()
	if err != nil {
		return fault.Permanent(
			fmt.Errorf("the roles %s and %s need a master key, which seals the keys that sign tokens: "+
				"set TRUNKLINE_MASTER_KEY or master_key_file, the same on every node: %w", settings.RoleAPI,
				settings.RoleFanout, err))
	}

	return tokens.PrepareSigning(ctx)
}

// ensureMasterKey creates the first master key if this process is the only user of the
// database. It runs after every package has checked that no key is missing.
func ensureMasterKey(b *base) error {
	if !b.hasLogins() || b.db.Postgres() { // the other nodes would not have a key created here
		return nil
	}

	file := b.settings.MasterKeys.File
	if file != "" {
		// A configured file without a key is an error: a new key would hide the mistake.
		_, err := b.keys.NewestID()
		if err != nil {
			return fmt.Errorf("master_key_file %s: %w", file, err)
		}
		return nil
	}

	created, err := b.keys.Create()
	if err != nil {
		return err
	}

	if created {
		b.log.Info("master key created: without this file the accounts' keys are lost, keep a copy elsewhere",
			"file", backend.MasterKeyFile(b.settings))
	}

	return nil
}
