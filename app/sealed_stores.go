package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
	"trunkline/config/aiprovider"
	"trunkline/config/encryption"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/settings"
	"trunkline/webhook"
)

// secrets holds the stores of configuration that contains secrets of accounts, sealed under the master keys.
type secrets struct {
	providers  *aiprovider.Service // nil without the roles api, origination and aisession
	encryption *encryption.Service // likewise
	webhooks   *webhook.Service    // nil without the role api
}

func openSecrets(ctx context.Context, b *base) (s secrets, err error) {
	if !b.handlesCalls() {
		return s, nil
	}

	s.providers, err = aiprovider.New(ctx, b.settings.AIProvider, b.db, b.keys, b.audit, b.registry)
	if err != nil {
		return s, fmt.Errorf("AI providers: %w", err)
	}

	s.encryption, err = encryption.New(ctx, b.db, b.keys, b.audit, b.registry)
	if err != nil {
		return s, fmt.Errorf("recording encryption: %w", err)
	}

	if b.hasRole(settings.RoleAPI) {
		s.webhooks, err = openWebhooks(ctx, b)
	}

	return s, err
}

// requireIdentitySecrets returns an error if the master key that seals the signing keys and the
// phones' passwords is missing. The packages of openSecrets check theirs themselves.
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
