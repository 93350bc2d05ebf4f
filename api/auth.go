package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// Authenticator checks tokens and API keys.
type Authenticator interface {
	// Authenticate returns the principal of a token. Returns fault.KindUnauthenticated for a token
	// that is malformed, forged, expired or revoked, and fault.KindForbidden for a valid one of an
	// audience that is not in accept. An empty accept accepts all audiences.
	Authenticate(ctx context.Context, token string, accept ...identity.Audience) (*identity.Principal, error)
	// AuthenticateKey returns the principal of an API key. It finds the key by its hash, so that
	// the time reveals nothing about how much of a guessed key is correct. Returns
	// fault.KindUnauthenticated for an unknown or expired key.
	AuthenticateKey(ctx context.Context, key string) (*identity.Principal, error)
}

// Accounts has the tree of accounts.
type Accounts interface {
	// Tree returns the current account tree.
	Tree() *identity.Tree
}

// auth authenticates the callers of routes and finds the account of a request.
type auth struct {
	tokens   Authenticator
	accounts Accounts
}

// credentials are the credentials of a request; at most one is not "".
type credentials struct {
	token string // Authorization: Bearer
	key   string // X-API-Key, or the password of Authorization: Basic
}

// requestCredentials returns the credentials of a request. Returns
// fault.KindUnauthenticated if there is more than one or the header is malformed.
func requestCredentials(r *http.Request) (credentials, error) {
	authorization, keys := r.Header.Values("Authorization"), r.Header.Values("X-API-Key")
	if len(authorization)+len(keys) > 1 {
		return credentials{}, fault.Unauthenticated("Send one credential only")
	}
	if len(keys) == 1 {
		return credentials{key: keys[0]}, nil
	}
	if len(authorization) == 0 {
		return credentials{}, nil
	}

	_, password, ok := r.BasicAuth()
	if ok {
		return credentials{key: password}, nil
	}

	scheme, token, _ := strings.Cut(authorization[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return credentials{}, fault.Unauthenticated("The Authorization header is malformed")
	}

	return credentials{token: strings.TrimSpace(token)}, nil
}

// hasCredential reports whether a header of the request has a token or key.
func hasCredential(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || r.Header.Get("X-API-Key") != ""
}

// hasPassword reports whether a login's body has username, password or domain.
func hasPassword(body *jsonObject) bool {
	return body.Has("username") || body.Has("password") || body.Has("domain")
}

// authenticateUser returns the user of the request's portal token.
func (a auth) authenticateUser(c echo.Context) (*identity.Principal, error) {
	return a.authenticateBearer(identity.AudienceAPI)(c)
}

// authenticateBearer returns a function that finds the user of a request's token, which
// must be for one of the audiences. An API key is not accepted.
func (a auth) authenticateBearer(accept ...identity.Audience) func(echo.Context) (*identity.Principal, error) {
	return func(c echo.Context) (*identity.Principal, error) {
		sent, err := requestCredentials(c.Request())
		if err != nil {
			return nil, err
		}

		if sent.token == "" {
			return nil, fault.Unauthenticated("A token is required")
		}

		p, err := a.tokens.Authenticate(c.Request().Context(), sent.token, accept...)
		if p != nil {
			rememberCaller(c, p) // a refusal of a valid token is audited
		}
		if err != nil {
			return p, err
		}

		return p, admitRole(c, p)
	}
}

// authenticateAPIKey returns the principal of the request's API key: in X-API-Key, or
// the password of Basic authentication.
func (a auth) authenticateAPIKey(c echo.Context) (*identity.Principal, error) {
	sent, err := requestCredentials(c.Request())
	if err != nil {
		return nil, err
	}
	if sent.key == "" {
		return nil, fault.Unauthenticated("An API key is required")
	}
	return a.authenticateKeyText(c, sent.key)
}

// authorized returns a handler that passes the result of find to handle. find authenticates
// and authorizes the request, and returns the caller, the account or another object.
func authorized[T any](find func(echo.Context) (T, error), handle func(echo.Context, T) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		found, err := find(c)
		if err != nil {
			return err
		}
		return handle(c, found)
	}
}

const contextRoute = "route"

// withRights sets the route, whose scope and roles bound its callers.
func withRights(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Set(contextRoute, &r)
		return r.handle(c)
	}
}

// roles is a set of roles beside admin and user.
type roles uint8

const (
	supervisors roles = 1 << iota
	agents
	auditors

	limitedRoles = supervisors | agents
	everyRole    = limitedRoles | auditors
)

// admitRole returns fault.KindForbidden for a role that the route is not for.
func admitRole(c echo.Context, p *identity.Principal) error {
	needed := map[identity.Role]roles{identity.RoleSupervisor: supervisors, identity.RoleAgent: agents,
		identity.RoleAuditor: auditors}[p.Role]
	r, _ := c.Get(contextRoute).(*route)
	if needed == 0 || r != nil && r.also&needed != 0 {
		return nil
	}
	return fault.Forbidden("The role " + string(p.Role) + " may not do this")
}

// authenticateKeyText returns the principal of the API key. Returns fault.KindForbidden if
// the key does not have the route's scope.
func (a auth) authenticateKeyText(c echo.Context, key string) (*identity.Principal, error) {
	p, err := a.tokens.AuthenticateKey(c.Request().Context(), key)
	if err != nil {
		return nil, err
	}

	var scope identity.Scope
	if r, ok := c.Get(contextRoute).(*route); ok {
		scope = r.scope
	}

	rememberCaller(c, p)
	if err := p.RequireScope(scope); err != nil {
		return p, err
	}

	return p, admitRole(c, p)
}

// authenticateAny returns the principal of the request's API key or portal token.
func (a auth) authenticateAny(c echo.Context) (*identity.Principal, error) {
	sent, err := requestCredentials(c.Request())
	switch {
	case err != nil:
		return nil, err
	case sent.key != "":
		return a.authenticateAPIKey(c)
	case sent.token == "":
		return nil, fault.Unauthenticated("A token or an API key is required")
	}

	return a.authenticateUser(c)
}

// requireAdmin returns fault.KindForbidden for a plain user. Other roles are here only where
// the route is for them too: see admitRole.
func requireAdmin(caller *identity.Principal) error {
	if caller.Role == identity.RoleUser {
		return fault.Forbidden("This is for administrators")
	}
	return nil
}

// authenticateAnyAdmin is authenticateAny for administrators and API keys.
func (a auth) authenticateAnyAdmin(c echo.Context) (*identity.Principal, error) {
	caller, err := a.authenticateAny(c)
	if err != nil {
		return nil, err
	}
	return caller, requireAdmin(caller)
}

// authenticateAdmin authenticates an administrator's token and returns the account of
// X-Account-ID. It checks, in this order, that X-Account-ID is sent, that the token is
// valid, that the caller can access the account, and that the caller is an administrator.
func (a auth) authenticateAdmin(c echo.Context) (identity.Account, error) {
	_, err := accountID(c)
	if err != nil {
		return identity.Account{}, err
	}

	caller, err := a.authenticateUser(c)
	if err != nil {
		return identity.Account{}, err
	}

	account, err := a.namedAccount(c, caller)
	if err != nil {
		return identity.Account{}, err
	}

	return account, requireAdmin(caller)
}

// accountID returns X-Account-ID, or fault.KindInvalid if it is absent.
func accountID(c echo.Context) (string, error) {
	id := c.Request().Header.Get("X-Account-ID")
	if id == "" {
		return "", fault.Invalid("Could not get account ID from context")
	}
	return id, nil
}

// authenticateAccount authenticates a token or a key, and returns the account of
// X-Account-ID, or the caller's own if it is absent.
func (a auth) authenticateAccount(c echo.Context) (identity.Account, error) {
	caller, err := a.authenticateAny(c)
	if err != nil {
		return identity.Account{}, err
	}
	return a.namedOrOwnAccount(c, caller)
}

// authenticateAccountAdmin is authenticateAccount for administrators and API keys.
func (a auth) authenticateAccountAdmin(c echo.Context) (identity.Account, error) {
	account, err := a.authenticateAccount(c)
	if err != nil {
		return identity.Account{}, err
	}
	return account, requireAdmin(callerOf(c))
}

// namedOrOwnAccount returns the account of X-Account-ID, or the caller's own if it is
// absent.
func (a auth) namedOrOwnAccount(c echo.Context, caller *identity.Principal) (identity.Account, error) {
	_, err := accountID(c)
	if err == nil {
		return a.namedAccount(c, caller)
	}
	account, ok := a.accounts.Tree().Account(caller.AccountID)
	if !ok {
		return identity.Account{}, fault.NotFound("Account not found")
	}
	return account, nil
}

// namedAccount returns the account of X-Account-ID. Returns fault.KindNotFound if the
// caller cannot access it.
func (a auth) namedAccount(c echo.Context, caller *identity.Principal) (identity.Account, error) {
	id, err := accountID(c)
	if err != nil {
		return identity.Account{}, err
	}
	return a.visibleAccount(caller, id)
}

// visibleAccount returns an account. Returns fault.KindNotFound if the caller cannot
// access it.
func (a auth) visibleAccount(caller *identity.Principal, id string) (identity.Account, error) {
	tree := a.accounts.Tree()
	account, ok := tree.Account(id)
	if !ok || !tree.Contains(caller.AccountID, id) {
		return identity.Account{}, fault.NotFound("Account not found")
	}
	return account, nil
}

const (
	contextAccount = "account"
	contextCaller  = "caller"
)

// rememberCaller stores the caller in the context, for handlers and the audit log, and the
// caller's account for the access log.
func rememberCaller(c echo.Context, p *identity.Principal) *identity.Principal {
	c.Set(contextAccount, p.AccountID)
	c.Set(contextCaller, p)
	ctx := audit.WithCaller(c.Request().Context(), audit.Caller{Actor: p.Actor(), Address: c.RealIP()})
	c.SetRequest(c.Request().WithContext(ctx))
	return p
}

// callerOf returns the caller that rememberCaller stored, nil if there is none.
func callerOf(c echo.Context) *identity.Principal {
	caller, _ := c.Get(contextCaller).(*identity.Principal)
	return caller
}

// callerAccount returns the account for the access log, "" if the request has no caller.
func callerAccount(c echo.Context) string {
	account, _ := c.Get(contextAccount).(string)
	return account
}
