package identity

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/identity/oidc"
	"trunkline/internal/keylock"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Credentials checks what people and phones prove who they are with: passwords, one-time
// passwords and the tokens of an OpenID Connect provider. It limits their attempts, and has
// Tokens issue what a login answers. It is safe for concurrent use.
type Credentials struct {
	cfg        Config
	db         *sqldb.DB
	audit      *audit.Log
	metrics    *metrics
	log        *slog.Logger
	directory  *Directory
	tokens     *Tokens
	keyring    *masterkey.Keyring
	passwords  *passwordHasher
	phones     *phonePasswords
	provider   *oidc.Client // nil if auth.oidc is not set
	limits     loginLimits
	phoneLocks keylock.Locks // held per user while a phone authenticates
}

func newCredentials(cfg Config, tokens *Tokens, keyring *masterkey.Keyring, reg prometheus.Registerer) *Credentials {
	d := tokens.directory
	c := &Credentials{
		cfg: cfg, db: d.db, audit: d.audit, metrics: d.metrics, log: d.log, directory: d, tokens: tokens,
		keyring: keyring, passwords: d.passwords, phones: d.phones,
		limits: loginLimits{tokens.limiter, newKnownAddresses(d.db, keyring, cfg.Now, d.log)},
	}

	if cfg.OIDC.Issuer != "" {
		c.provider = oidc.New(cfg.OIDC, cfg.Now, reg, d.log)
	}

	return c
}
