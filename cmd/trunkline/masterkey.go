package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/config/aiprovider"
	"trunkline/config/encryption"
	"trunkline/config/settings"
	"trunkline/identity"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

func (p *program) masterkeyCommand() *cobra.Command {
	return group("masterkey", "The keys that seal secrets in the database", p.masterkeyRotate())
}

func (p *program) masterkeyRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Make the next master key and seal every secret under it",
		Long: `Make the next master key, seal every secret in the database under it, and take
the old keys out of the key file: beside running servers, which follow. Broken
off, it goes on where it was when it is run again.

Where the keys are the setting master_key, add the new one at its end on every
node, restart them, and run this: it seals everything under the last one.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withConfigs(cmd.Context(), func(w configs) error {
				directory, err := w.directory(cmd.Context(), p)
				if err != nil {
					return err
				}
				progress := p.meter("secrets sealed anew")
				rooms := []masterkey.Room{w.encryption.Secrets(), w.providers.Secrets(), directory.Secrets()}
				done, err := masterkey.Rotate(cmd.Context(), w.keys, rooms, progress.tell)
				if err != nil {
					return fmt.Errorf("rotating the master key: %w", err)
				}
				text := "everything is sealed under master key %s\n"
				if done.Resumed {
					text = "a rotation begun before is finished: " + text
				}
				_, err = fmt.Fprintf(p.out, text, done.ID)
				return err
			})
		},
	}
}

// configs is what works on the accounts' keys need.
type configs struct {
	settings   *settings.Settings
	db         *sqldb.DB
	keys       *masterkey.Keyring
	encryption *encryption.Service
	providers  *aiprovider.Service
}

// directory is the accounts and users of the same database.
func (w configs) directory(ctx context.Context, p *program) (*identity.Service, error) {
	return backend.Identity(ctx, w.settings, w.db, w.keys, identity.NewMemoryLimiter(), prometheus.NewRegistry(), p.toolLog())
}

// withConfigs runs work on the accounts' keys: on the database itself, beside
// running servers or without one.
func (p *program) withConfigs(ctx context.Context, work func(configs) error) (err error) {
	s, err := p.settings()
	if err != nil {
		return err
	}
	keys, err := backend.MasterKeys(s)
	if err != nil {
		return err
	}
	db, err := backend.Database(ctx, s, p.toolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	service, err := encryption.New(ctx, db, keys, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	providers, err := aiprovider.New(ctx, aiprovider.Config{}, db, keys, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	return work(configs{s, db, keys, service, providers})
}
