package identity

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

const (
	signingAlgorithm = "EdDSA"
	// Tokens of earlier versions carried filters of up to 20 KB.
	maxTokenLength = 32 << 10
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
func (s *Service) sign(user User, audience Audience, ttl time.Duration, extra claims) (string, error) {
	now := s.cfg.Now()
	key, err := s.directory.Load().signingKeys.signer(now)
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

// Authenticate returns the principal of a token. Returns fault.KindUnauthenticated for a
// token that is malformed, forged, expired or revoked, and fault.KindForbidden for a
// valid one of an audience that is not in accept, with its principal. An empty accept accepts
// all audiences.
func (s *Service) Authenticate(ctx context.Context, token string, accept ...Audience) (*Principal, error) {
	p, result, err := s.checkToken(ctx, token, accept)
	s.metrics.tokenChecks.WithLabelValues(result).Inc()
	return p, err
}

func (s *Service) checkToken(ctx context.Context, token string, accept []Audience) (*Principal, string, error) {
	c, err := s.verify(ctx, token)
	if err != nil {
		return nil, resultWrong, &fault.Error{
			Kind: fault.KindUnauthenticated, Message: "The token is not valid", Cause: err,
		}
	}
	if err := s.requireFresh(ctx); err != nil {
		return nil, resultError, err
	}
	p := c.toPrincipal()
	_, known := s.Tree().Account(p.AccountID)
	if !known {
		s.pollEarly(ctx) // another node may have just created it
	}
	_, known = s.userStates.find(p.UserID)
	if !known && p.KeyID == "" && !s.revoked.has(p.UserID) {
		s.lookupUser(ctx, p.UserID)
	}
	_, known = s.directory.Load().keysByID[p.KeyID]
	if !known && p.KeyID != "" {
		s.pollEarly(ctx)
	}
	if err := s.CheckPrincipal(p); err != nil {
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
	p.Filter, err = s.loadFilter(ctx, c)
	if err != nil {
		return nil, resultExpired, err
	}
	p.storedSight = s.SightOf(p)
	return p, resultOK, nil
}

// verify verifies the signature and validates the claims, except expiry and revocation.
func (s *Service) verify(ctx context.Context, token string) (*claims, error) {
	if len(token) > maxTokenLength {
		return nil, errors.New("it is too long")
	}
	verified := s.directory.Load().verifiedTokens
	if c, ok := verified.find(token); ok {
		return c, c.check(s.cfg.Settings, s.cfg.Now())
	}
	parser := jwt.NewParser(
		jwt.WithValidMethods([]string{signingAlgorithm}),
		jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation(), // claims.check does it, without a leeway for exp
	)
	c := &claims{}
	parsed, err := parser.ParseWithClaims(token, c, func(t *jwt.Token) (any, error) { return s.publicKey(ctx, t) })
	if err != nil {
		return nil, err
	}
	c.signingKey, _ = parsed.Header["kid"].(string)
	verified.put(token, c)
	return c, c.check(s.cfg.Settings, s.cfg.Now())
}

// publicKey returns the public key with the key id of a token. For an id that is not in
// memory it polls, because another node may have just created the key.
func (s *Service) publicKey(ctx context.Context, token *jwt.Token) (any, error) {
	id, _ := token.Header["kid"].(string)
	if id == "" {
		return nil, errors.New("it names no key")
	}
	key, known := s.directory.Load().signingKeys.find(id)
	if !known {
		s.pollEarly(ctx)
		key, known = s.directory.Load().signingKeys.find(id)
	}
	if !known {
		return nil, errors.New("it names an unknown key")
	}
	return key.public, nil
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

// CheckPrincipal checks that an authenticated principal is still valid, without I/O.
// Returns fault.KindUnauthenticated if its token or key has expired, fault.KindForbidden
// if it was revoked or its user, key or account was deleted or changed, and
// fault.KindUnavailable if a change has not been loaded for maxStaleness. While the database
// cannot be read at all it uses what memory has, so that open sockets stay open.
func (s *Service) CheckPrincipal(p *Principal) error {
	if s.freshness.isBehind() {
		return errStale
	}
	d := s.directory.Load()
	_, known := d.tree.Account(p.AccountID)
	if !known {
		return fault.Forbidden("The account was deleted")
	}
	if p.KeyID != "" {
		err := s.checkKey(d, p)
		if err != nil || p.IsKey() {
			return err
		}
	}
	if !s.cfg.Now().Before(p.ExpiresAt) {
		return fault.Unauthenticated("The token has expired")
	}
	_, known = d.signingKeys.find(p.signingKey)
	if !known {
		return fault.Forbidden("The signing key was replaced")
	}
	if s.revoked.has(p.TokenID) || s.revoked.has(p.FamilyID) || s.revoked.has(p.UserID) {
		return fault.Forbidden("Access was revoked")
	}
	if p.KeyID != "" {
		return nil
	}
	user, known := s.userStates.find(p.UserID)
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
func (s *Service) checkKey(d *directory, p *Principal) error {
	key, known := d.keysByID[p.KeyID]
	switch {
	case !known || key.AccountID != p.AccountID:
		return fault.Forbidden("The API key was deleted")
	case key.expired(s.cfg.Now()):
		return fault.Unauthenticated("The API key has expired")
	case !p.IsKey() && !slices.Contains(key.Scopes, ScopeSubscribe):
		return fault.Forbidden("The API key lost the scope " + string(ScopeSubscribe))
	}
	return nil
}
