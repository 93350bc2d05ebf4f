package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"trunkline/internal/fault"
)

// algorithms are the asymmetric algorithms of go-oidc. "none" and HMAC, whose key would
// be the client's secret, are not accepted.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512,
	oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

const maxTokenBytes = 32 << 10

// IssuerOf returns the unverified issuer of a token, "" if the token is not a JWT.
func IssuerOf(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	if len(token) > maxTokenBytes {
		return ""
	}

	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}

	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return ""
	}

	return claims.Issuer
}

// invalidToken returns the error of an invalid token. code is the reason in the audit
// log.
func invalidToken(code, message string, cause error) error {
	return &fault.Error{Kind: fault.KindUnauthenticated, Message: message,
		Fields: []fault.Field{{Field: "token", Code: code, Message: message}}, Cause: cause}
}

// Verify returns the user of an ID token or a JWT access token of the provider. Returns
// fault.KindUnauthenticated for an invalid token, fault.KindForbidden if it lacks a
// claim, and fault.KindUnavailable if the provider's keys cannot be read.
func (c *Client) Verify(ctx context.Context, token string) (Identity, error) {
	verified, err := c.verifyToken(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	return c.parseIdentity(verified)
}

func (c *Client) verifyToken(ctx context.Context, token string) (*oidc.IDToken, error) {
	if len(token) > maxTokenBytes {
		return nil, invalidToken("malformed", "The token is too long", nil)
	}

	// Before currentProvider: a token of somebody else causes no request to the provider.
	issuer := IssuerOf(token)
	if issuer != c.settings.Issuer {
		return nil, invalidToken("wrong_issuer",
			"The token is not of the provider: its claim \"iss\" is not auth.oidc.issuer", nil)
	}

	p, err := c.currentProvider(ctx)
	if err != nil {
		return nil, err
	}

	keys := &recordedKeys{KeySet: p.keys}
	verified, err := oidc.NewVerifier(c.settings.Issuer, keys, &oidc.Config{
		SkipClientIDCheck: true, SupportedSigningAlgs: algorithms, Now: c.now,
	}).Verify(ctx, token)
	var expired *oidc.TokenExpiredError

	switch {
	case errors.As(err, &expired):
		return nil, invalidToken("expired", "The token has expired", nil)
	case keys.err != nil && c.jwksUnavailable(keys.err):
		return nil, fault.Unavailable(truncateError(keys.err), jwksInterval,
			"The provider of auth.oidc.issuer cannot be used now: its keys cannot be read")
	case err != nil:
		return nil, invalidToken("wrong_token", "The token is not valid", truncateError(err))
	}

	return verified, c.checkPurpose(verified, typeOf(token))
}

// maxIssuedAhead is how far the provider's clock may be ahead.
const maxIssuedAhead = time.Minute

// checkPurpose checks that a token that the provider has signed was made to log in here,
// and not for another client or as a message of another kind. typ is its header's.
func (c *Client) checkPurpose(token *oidc.IDToken, typ string) error {
	var claims struct {
		AuthorizedParty string          `json:"azp"`
		Events          json.RawMessage `json:"events"` // of security event tokens, such as logout tokens
	}
	if err := token.Claims(&claims); err != nil {
		return invalidToken("malformed", "The token's claims cannot be read", nil)
	}

	isForClient := c.settings.ClientID != "" && slices.Contains(token.Audience, c.settings.ClientID)
	isForAudience := c.settings.Audience != "" && slices.Contains(token.Audience, c.settings.Audience)
	switch {
	case !isForClient && !isForAudience:
		return invalidToken("wrong_audience",
			"The token is for another service: its claim \"aud\" has neither auth.oidc.client_id nor auth.oidc.audience",
			nil)
	case isForClient && claims.AuthorizedParty != "" && claims.AuthorizedParty != c.settings.ClientID:
		return invalidToken("wrong_client",
			"The token was issued to another client: its claim \"azp\" is not auth.oidc.client_id", nil)
	case claims.Events != nil || !slices.Contains(loginTypes, strings.ToLower(typ)):
		return invalidToken("wrong_type", "The token is neither an ID token nor an access token", nil)
	case token.IssuedAt.After(c.now().Add(maxIssuedAhead)):
		return invalidToken("future",
			"The token was issued in the future: its claim \"iat\" is ahead of this server's clock", nil)
	}

	return nil
}

// loginTypes are the types (header typ) of ID tokens and of access tokens (RFC 9068), in
// lower case.
var loginTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

// typeOf returns the header typ of a token whose signature was verified.
func typeOf(token string) string {
	encoded, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}

	var header struct {
		Type string `json:"typ"`
	}
	if err := json.Unmarshal(text, &header); err != nil {
		// Not "", which is one of loginTypes.
		return "unreadable"
	}

	return header.Type
}

// recordedKeys is a key set that stores its last error, because the verifier does not
// return that error.
type recordedKeys struct {
	oidc.KeySet
	err error
}

func (k *recordedKeys) VerifySignature(ctx context.Context, token string) (payload []byte, err error) {
	payload, k.err = k.KeySet.VerifySignature(ctx, token)
	return payload, k.err
}

// jwksUnavailable reports whether err means that the keys could not be read, not that a
// signature is wrong. For a request above the rate limit the result of the last request
// applies: if that succeeded, the keys are recent and do not include the token's key.
func (c *Client) jwksUnavailable(err error) bool {
	if errors.Is(err, errJWKSRateLimited) {
		return c.transport.jwksFailing.Load()
	}
	return strings.HasPrefix(err.Error(), "fetching keys") // of oidc.RemoteKeySet
}

// Identity is the user that the claims of a token describe.
type Identity struct {
	Issuer, Subject string   // together they identify the user permanently
	Username        string   // preferred_username, else email, else Subject
	Account         string   // id, name or domain
	Roles           []string // of Settings.RoleClaim
	PresenceID      *string  // nil if Settings.PresenceClaim is unset or the token lacks it
	SecondFactor    bool     // the claim amr names one (RFC 8176)
	Expires         time.Time
}

func (c *Client) parseIdentity(token *oidc.IDToken) (Identity, error) {
	var claims claims
	if err := token.Claims(&claims); err != nil {
		return Identity{}, invalidToken("malformed", "The token's claims cannot be read", nil)
	}

	id := Identity{Issuer: token.Issuer, Subject: token.Subject, Expires: token.Expiry}
	if id.Subject == "" {
		return Identity{}, missingClaim("sub", "")
	}

	var ok bool
	id.Account, ok = claims.text(c.settings.AccountClaim)
	if !ok || id.Account == "" {
		return Identity{}, missingClaim(c.settings.AccountClaim, "auth.oidc.account_claim")
	}

	claim := c.settings.RoleClaim
	if claim != "" {
		id.Roles = claims.list(claim)
		if len(id.Roles) == 0 {
			return Identity{}, missingClaim(claim, "auth.oidc.role_claim")
		}
	}

	if presence, ok := claims.text(c.settings.PresenceClaim); ok {
		id.PresenceID = &presence
	}

	for _, name := range []string{"preferred_username", "email"} {
		if id.Username == "" {
			id.Username, _ = claims.text(name)
		}
	}

	if id.Username == "" {
		id.Username = id.Subject
	}

	methods := claims.list("amr")
	id.SecondFactor = slices.Contains(methods, "mfa") || slices.Contains(methods, "otp") ||
		slices.Contains(methods, "hwk")

	return id, nil
}

func missingClaim(claim, setting string) error {
	message := "The claim \"" + claim + "\" of the token is missing or has no text"
	if setting != "" {
		message += " (" + setting + ")"
	}
	return &fault.Error{Kind: fault.KindForbidden, Message: message,
		Fields: []fault.Field{{Field: claim, Code: "missing_claim", Message: message}}}
}
