package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// Authenticator knows tokens, API keys, and which accounts there are.
type Authenticator interface {
	Authenticate(ctx context.Context, token string, accept ...identity.Audience) (*identity.Principal, error)
	AuthenticateKey(ctx context.Context, key string) (*identity.Principal, error)
	Tree() *identity.Tree
}

// auth is how a route asks who is calling, and for which account.
type auth struct{ identity Authenticator }

// credentials are what a request shows of itself.
type credentials struct {
	token string // Authorization: Bearer
	key   string // X-API-Key, or the password of Authorization: Basic
}

// credentialsOf reads them. Two at once are refused: which of them counts must
// not depend on the route.
func credentialsOf(r *http.Request) (credentials, error) {
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
	if _, password, ok := r.BasicAuth(); ok {
		return credentials{key: password}, nil
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return credentials{}, fault.Unauthenticated("The Authorization header is malformed")
	}
	return credentials{token: strings.TrimSpace(token)}, nil
}

// bearer is the user whose token, for one of these audiences, the request
// shows. An API key is no token.
func (a auth) bearer(c echo.Context, accept ...identity.Audience) (*identity.Principal, error) {
	shown, err := credentialsOf(c.Request())
	if err != nil {
		return nil, err
	}
	if shown.token == "" {
		return nil, fault.Unauthenticated("A token is needed")
	}
	p, err := a.identity.Authenticate(c.Request().Context(), shown.token, accept...)
	if err != nil {
		return nil, err
	}
	return remember(c, p), nil
}

// apiKey is the API key that the request shows: in X-API-Key, or as the
// password of Basic where a client can send nothing else.
func (a auth) apiKey(c echo.Context) (*identity.Principal, error) {
	shown, err := credentialsOf(c.Request())
	if err != nil {
		return nil, err
	}
	if shown.key == "" {
		return nil, fault.Unauthenticated("An API key is needed")
	}
	p, err := a.identity.AuthenticateKey(c.Request().Context(), shown.key)
	if err != nil {
		return nil, err
	}
	return remember(c, p), nil
}

// keyOrBearer is the API key or the user whose portal token the request shows.
func (a auth) keyOrBearer(c echo.Context) (*identity.Principal, error) {
	shown, err := credentialsOf(c.Request())
	switch {
	case err != nil:
		return nil, err
	case shown.key != "":
		return a.apiKey(c)
	case shown.token == "":
		return nil, fault.Unauthenticated("A token or an API key is needed")
	}
	return a.bearer(c, identity.AudienceAPI)
}

func mustAdminister(caller *identity.Principal) error {
	if caller.Role != identity.RoleAdmin {
		return fault.Forbidden("This is for administrators")
	}
	return nil
}

// administrator is who calls, for an audit log, and the account that the call is
// about: a user with a token, no API key. The order of the refusals is the
// contract's.
func (a auth) administrator(c echo.Context) (who string, account identity.Account, err error) {
	if _, err := accountID(c); err != nil {
		return "", identity.Account{}, err
	}
	caller, err := a.bearer(c, identity.AudienceAPI)
	if err != nil {
		return "", identity.Account{}, err
	}
	account, err = a.account(c, caller)
	if err != nil {
		return "", identity.Account{}, err
	}
	return "user:" + caller.UserID, account, mustAdminister(caller)
}

// accountID is what X-Account-ID says.
func accountID(c echo.Context) (string, error) {
	id := c.Request().Header.Get("X-Account-ID")
	if id == "" {
		return "", fault.Invalid("Could not get account ID from context")
	}
	return id, nil
}

// ownOrNamed is an API key's own account where X-Account-ID names none; a user
// must name one.
func (a auth) ownOrNamed(c echo.Context, caller *identity.Principal) (identity.Account, error) {
	if caller.IsKey() {
		return a.callersOrNamed(c, caller)
	}
	return a.account(c, caller)
}

// callersOrNamed is the caller's own account where X-Account-ID names none.
func (a auth) callersOrNamed(c echo.Context, caller *identity.Principal) (identity.Account, error) {
	if _, err := accountID(c); err == nil {
		return a.account(c, caller)
	}
	account, ok := a.identity.Tree().Account(caller.AccountID)
	if !ok {
		return identity.Account{}, fault.NotFound("Account not found")
	}
	return account, nil
}

// account is the account that X-Account-ID names, when the caller may see it;
// else it does not exist.
func (a auth) account(c echo.Context, caller *identity.Principal) (identity.Account, error) {
	id, err := accountID(c)
	if err != nil {
		return identity.Account{}, err
	}
	tree := a.identity.Tree()
	account, ok := tree.Account(id)
	if !ok || !tree.Contains(caller.AccountID, id) {
		return identity.Account{}, fault.NotFound("Account not found")
	}
	return account, nil
}

const contextAccount = "account"

// remember keeps the caller's account for the access log.
func remember(c echo.Context, p *identity.Principal) *identity.Principal {
	c.Set(contextAccount, p.AccountID)
	return p
}

func accountOf(c echo.Context) string {
	account, _ := c.Get(contextAccount).(string)
	return account
}
