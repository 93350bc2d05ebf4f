package identity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/internal/fault"
)

// Authenticate returns the principal of a token. Returns fault.KindUnauthenticated for a
// token that is malformed, forged, expired or revoked, and fault.KindForbidden for a
// valid one of an audience that is not in accept, with its principal. An empty accept accepts
// all audiences.
func (t *Tokens) Authenticate(ctx context.Context, token string, accept ...Audience) (*Principal, error) {
	p, result, err := t.checkToken(ctx, token, accept)
	t.metrics.tokenChecks.WithLabelValues(result).Inc()
	return p, err
}

func (t *Tokens) checkToken(ctx context.Context, token string, accept []Audience) (*Principal, string, error) {
	c, err := t.verify(ctx, token)
	if err != nil {
		return nil, resultWrong, &fault.Error{
			Kind: fault.KindUnauthenticated, Message: "The token is not valid", Cause: err,
		}
	}

	if err := t.directory.changes.requireFresh(ctx); err != nil {
		return nil, resultError, err
	}

	p := c.toPrincipal()
	_, known := t.directory.Tree().Account(p.AccountID)
	if !known {
		t.directory.changes.pollEarly(ctx) // another node may have just created it
	}

	_, known = t.directory.userStates.find(p.UserID)
	if !known && p.KeyID == "" && !t.revocations.has(p.UserID) {
		t.directory.lookupUser(ctx, p.UserID)
	}

	_, known = t.directory.snapshot.Load().keysByID[p.KeyID]
	if !known && p.KeyID != "" {
		t.directory.changes.pollEarly(ctx)
	}

	if err := t.CheckPrincipal(p); err != nil {
		switch fault.KindOf(err) {
		case fault.KindUnauthenticated:
			return nil, resultExpired, err
		case fault.KindUnavailable:
			return nil, resultError, err
		}

		return nil, resultRevoked, fault.Unauthenticated("The token is revoked")
	}

	if len(accept) > 0 && !slices.Contains(accept, p.Audience) {
		return p, resultAudience, fault.Forbidden("The token is for another purpose")
	}

	p.Filter, err = t.loadFilter(ctx, c)
	if err != nil {
		return nil, resultExpired, err
	}

	p.authVisibility = t.directory.VisibilityOf(p)
	return p, resultOK, nil
}

// verify verifies the signature and validates the claims, except expiry and revocation.
func (t *Tokens) verify(ctx context.Context, token string) (*claims, error) {
	if len(token) > maxTokenBytes {
		return nil, errors.New("it is too long")
	}

	// Loaded once: claims verified with keys that are replaced meanwhile go to a cache that nobody reads.
	verified := t.signing.Load().verifiedTokens
	if c, ok := verified.find(token); ok {
		return c, c.check(t.cfg.Settings, t.cfg.Now())
	}

	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{signingAlgorithm}),
		jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation(), // claims.check does it, without a leeway for exp
	)
	c := &claims{}
	parsed, err := parser.ParseWithClaims(token, c,
		func(signed *jwt.Token) (any, error) { return t.publicKey(ctx, signed) })
	if err != nil {
		return nil, err
	}

	c.signingKey, _ = parsed.Header["kid"].(string)
	verified.put(token, c)
	return c, c.check(t.cfg.Settings, t.cfg.Now())
}

// publicKey returns the public key with the key id of a token. For an id that is not in
// memory it polls, because another node may have just created the key.
func (t *Tokens) publicKey(ctx context.Context, token *jwt.Token) (any, error) {
	id, _ := token.Header["kid"].(string)
	if id == "" {
		return nil, errors.New("it names no key")
	}

	key, known := t.signing.Load().keys.find(id)
	if !known {
		t.directory.changes.pollEarly(ctx)
		key, known = t.signing.Load().keys.find(id)
	}
	if !known {
		return nil, errors.New("it names an unknown key")
	}

	return key.public, nil
}

// AuthenticateKey returns the principal of an API key. It finds the key by its hash, so
// that the time reveals nothing about how much of a guessed key is correct. Returns
// fault.KindUnauthenticated for an unknown or expired key.
func (t *Tokens) AuthenticateKey(ctx context.Context, key string) (*Principal, error) {
	if err := t.directory.changes.requireFresh(ctx); err != nil {
		t.metrics.keyChecks.WithLabelValues(resultError).Inc()
		return nil, err
	}

	p, err := t.findKey(ctx, key)
	if err != nil {
		t.metrics.keyChecks.WithLabelValues(resultWrong).Inc()
		return nil, err
	}

	t.metrics.keyChecks.WithLabelValues(resultOK).Inc()
	return p, nil
}

func (t *Tokens) findKey(ctx context.Context, key string) (*Principal, error) {
	invalidKey := fault.Unauthenticated("The API key is not valid")
	if len(key) != len(keyPrefix)+secretLength || !strings.HasPrefix(key, keyPrefix) {
		return nil, invalidKey
	}

	hash := hashSecret(key)
	found, ok := t.directory.snapshot.Load().keysByHash[hash]
	if !ok {
		t.directory.changes.pollEarly(ctx) // another process may have created it a moment ago
		found, ok = t.directory.snapshot.Load().keysByHash[hash]
		if !ok {
			return nil, invalidKey
		}
	}

	p := &Principal{KeyID: found.ID, AccountID: found.AccountID, Role: found.Role, Scopes: found.Scopes}
	err := t.CheckPrincipal(p)
	p.authVisibility = t.directory.VisibilityOf(p)
	if fault.KindOf(err) == fault.KindForbidden {
		return nil, invalidKey
	}

	return p, err
}

// CheckPrincipal checks that an authenticated principal is still valid, without I/O.
// Returns fault.KindUnauthenticated if its token or key has expired, fault.KindForbidden
// if it was revoked or its user, key or account was deleted or changed, and
// fault.KindUnavailable if a change has not been loaded for maxStaleness. While the database
// cannot be read at all it uses what memory has, so that open sockets stay open.
func (t *Tokens) CheckPrincipal(p *Principal) error {
	if t.directory.changes.freshness.isBehind() {
		return errStale
	}

	directory := t.directory.snapshot.Load()
	_, known := directory.tree.Account(p.AccountID)
	if !known {
		return fault.Forbidden("The account was deleted")
	}

	if p.KeyID != "" {
		err := directory.checkKey(p, t.cfg.Now())
		if err != nil || p.IsKey() {
			return err
		}
	}

	if !t.cfg.Now().Before(p.ExpiresAt) {
		return fault.Unauthenticated("The token has expired")
	}

	_, known = t.signing.Load().keys.find(p.signingKey)
	if !known {
		return fault.Forbidden("The signing key was replaced")
	}
	if t.revocations.has(p.TokenID) || t.revocations.has(p.FamilyID) || t.revocations.has(p.UserID) {
		return fault.Forbidden("Access was revoked")
	}

	if p.KeyID != "" {
		return nil
	}

	user, known := t.directory.userStates.find(p.UserID)
	if !known || user.accountID != p.AccountID || user.role != p.Role {
		return fault.Forbidden("The user was deleted or has another role")
	}
	if p.passwordGeneration < user.generation && (p.FamilyID == "" || p.FamilyID != user.keptFamily) {
		return fault.Forbidden("The password was changed")
	}

	return nil
}

// checkKey is CheckPrincipal for the API key of a principal, or for the one that the
// principal's token was issued from.
func (s *snapshot) checkKey(p *Principal, now time.Time) error {
	key, known := s.keysByID[p.KeyID]
	switch {
	case !known || key.AccountID != p.AccountID:
		return fault.Forbidden("The API key was deleted")
	case key.expired(now):
		return fault.Unauthenticated("The API key has expired")
	case !p.IsKey() && !slices.Contains(key.Scopes, ScopeSubscribe):
		return fault.Forbidden("The API key lost the scope " + string(ScopeSubscribe))
	}

	return nil
}
