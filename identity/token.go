package identity

import (
	"errors"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Tokens issues, verifies and revokes tokens, and verifies API keys. It owns the signing
// keys, the sessions, the revocations and the filters of channel tokens. It is safe for
// concurrent use.
type Tokens struct {
	cfg       Config
	db        *sqldb.DB
	audit     *audit.Log
	metrics   *metrics
	log       *slog.Logger
	directory *Directory
	keyring   *masterkey.Keyring
	limiter   Limiter

	signing     atomic.Pointer[loadedSigningKeys]
	revocations revocations
	filters     *boundedCache[string, Filter] // by id
}

func newTokens(cfg Config, d *Directory, keyring *masterkey.Keyring, limiter Limiter) *Tokens {
	return &Tokens{
		cfg: cfg, db: d.db, audit: d.audit, metrics: d.metrics, log: d.log, directory: d, keyring: keyring,
		limiter:     limiter,
		revocations: revocations{until: make(map[string]int64)},
		filters:     newBoundedCache[string, Filter](maxCachedFilters),
	}
}

const (
	signingAlgorithm = "EdDSA"
	// Tokens of earlier versions carried filters of up to 20 KB.
	maxTokenBytes = 32 << 10
	// issueLeeway is the time by which the clock of the node that issued a token may be ahead.
	issueLeeway = 5 * time.Second
)

// claims are the claims of a token: those of RFC 7519, with aud a plain string, and
// Trunkline's own.
type claims struct {
	jwt.RegisteredClaims
	Audience  Audience `json:"aud"`
	Identity  string   `json:"identity"` // <user_id>:<account>
	AccountID string   `json:"account_id"`
	Username  string   `json:"username"`
	Role      Role     `json:"role"`
	Family    string   `json:"family,omitempty"`
	Key       string   `json:"key,omitempty"` // id of the API key that the token was issued from; also its subject
	Filter
	FilterID   string `json:"filter,omitempty"`     // id of a stored filter
	Generation int64  `json:"generation,omitempty"` // passwordGeneration of the user

	signingKey string         // id of the key that signed the token
	affinity   map[string]any // header parameters; see affinityHeader
}

// sign issues a token of the audience for user, valid for ttl. extra has additional
// claims. For a token of an API key, user has the key's id.
func (t *Tokens) sign(user User, audience Audience, ttl time.Duration, extra claims) (string, error) {
	now := t.cfg.Now()
	key, err := t.signing.Load().keys.signer(now)
	if err != nil {
		return "", err
	}

	if key.private == nil {
		return "", fault.Unavailable(key.unsealErr, time.Minute, "Tokens cannot be signed: the master key is missing")
	}

	c := extra
	c.RegisteredClaims = jwt.RegisteredClaims{
		Issuer: issuer, Subject: user.ID, ID: sqldb.NewID(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	}
	c.Audience = audience
	c.Identity = user.ID + ":" + user.AccountID
	c.AccountID, c.Username, c.Role = user.AccountID, user.Username, user.Role
	c.Generation = user.passwordGeneration
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	token.Header["kid"] = key.id
	maps.Copy(token.Header, c.affinity)
	signed, err := token.SignedString(key.private)
	if err != nil {
		return "", fault.Internal(err, "The token could not be signed")
	}

	return signed, nil
}

// check checks the claims. It refuses a lifetime longer than that of the token's
// audience: otherwise a token signed with a stolen key could outlive the key.
func (c *claims) check(s Settings, now time.Time) error {
	latest := now.Add(issueLeeway)
	switch {
	case c.Issuer != issuer:
		return errors.New("another issuer made it")
	case c.Subject == "" || c.ID == "" || c.AccountID == "" || c.ExpiresAt == nil || c.IssuedAt == nil:
		return errors.New("it lacks a claim")
	case c.Key != "" && (c.Key != c.Subject || c.Audience != AudienceEvents || c.Role != RoleUser):
		return errors.New("an API key has no such token")
	case !c.Audience.Valid() || !c.Role.Valid() || c.Identity != c.Subject+":"+c.AccountID:
		return errors.New("it has a wrong claim")
	case c.IssuedAt.After(latest) || c.NotBefore != nil && c.NotBefore.After(latest):
		return errors.New("it is from the future")
	case c.ExpiresAt.Sub(c.IssuedAt.Time) > s.ttl(c.Audience)+time.Second: // both are whole seconds
		return errors.New("it lives longer than such a token may")
	}

	return nil
}

func (c *claims) toPrincipal() *Principal {
	p := &Principal{
		UserID: c.Subject, Username: c.Username, AccountID: c.AccountID, Role: c.Role,
		Audience: c.Audience, TokenID: c.ID, FamilyID: c.Family,
		ExpiresAt:  c.ExpiresAt.Time,
		signingKey: c.signingKey, passwordGeneration: c.Generation,
	}

	if c.Key != "" {
		p.UserID, p.KeyID = "", c.Key
	}

	return p
}
