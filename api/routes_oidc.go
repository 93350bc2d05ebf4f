package api

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/identity/oidc"
	"trunkline/internal/fault"
)

// ProviderLogins begins and finishes the logins of browsers at the OpenID Connect
// provider.
type ProviderLogins interface {
	// HasOIDC reports whether users can log in by an OpenID Connect provider.
	HasOIDC() bool
	// CanBeginOIDC reports whether browsers can log in at the provider by code flow.
	CanBeginOIDC() bool
	// BeginOIDC begins a browser's login at the provider and returns the address at the provider to
	// which the browser is redirected.
	BeginOIDC(ctx context.Context) (flow oidc.Flow, address string, err error)
	// FinishOIDC is Login with the authorization code in the browser's redirect from the provider.
	FinishOIDC(ctx context.Context, flow oidc.Flow, code, address string) (*identity.Session, error)
}

// oidcRoutes are the login of the board at the provider, by code flow. All state is in
// cookies of the browser, so that any node can continue it:
//
//	handleStart     sets cookieFlow and redirects to the provider
//	handleCallback  exchanges the code of the provider's redirect, creates a session, sets
//	                cookieResult and redirects to the board
//	handleSession   returns the session's tokens to the board
//
// The cookies' prefix __Host- keeps other hosts of the domain from setting them.
type oidcRoutes struct {
	portal   Portal
	sessions Sessions
}

const (
	cookieFlow      = "__Host-trunkline_flow"
	cookieResult    = "__Host-trunkline_login"
	flowCookieTTL   = 10 * time.Minute
	resultCookieTTL = 2 * time.Minute
	boardLoginPath  = "/?login=oidc" // the board then requests the result from session
)

func (r oidcRoutes) routes() []route {
	return []route{
		{method: http.MethodGet, path: "/auth/oidc", handle: r.handleDescribe},
		{method: http.MethodGet, path: "/auth/oidc/start", handle: r.handleStart},
		{method: http.MethodGet, path: oidc.CallbackPath, handle: r.handleCallback, anyQuery: true},
		{method: http.MethodPost, path: "/auth/oidc/session", handle: r.handleSession},
	}
}

// loginResult is the result of a login at the provider: the refresh token of a session,
// which can be used once, or an error.
type loginResult struct {
	RefreshToken string     `json:"refresh_token,omitempty"`
	Kind         fault.Kind `json:"kind,omitempty"`
	Message      string     `json:"message,omitempty"`
}

func (r oidcRoutes) handleDescribe(c echo.Context) error {
	return writeJSON(c, http.StatusOK, struct {
		Enabled bool `json:"enabled"`
		Login   bool `json:"login"`
	}{r.portal.HasOIDC(), r.portal.CanBeginOIDC()})
}

func (r oidcRoutes) handleStart(c echo.Context) error {
	flow, address, err := r.portal.BeginOIDC(c.Request().Context())
	switch fault.KindOf(err) {
	case "":
	case fault.KindNotFound:
		return err
	default:
		// The browser has left the board for this address: the board shows the error.
		return redirectToBoard(c, nil, err)
	}

	if err := setCookie(c, cookieFlow, flow, flowCookieTTL); err != nil {
		return err
	}

	return redirect(c, address)
}

// errNoFlow is returned if the browser has no cookieFlow with the state of the redirect.
var errNoFlow = fault.Unauthenticated(
	"The login was not begun in this browser, or more than 10 minutes ago: log in again")

func (r oidcRoutes) handleCallback(c echo.Context) error {
	var flow oidc.Flow
	found := readAndDeleteCookie(c, cookieFlow, &flow)
	state := c.QueryParam("state")
	if !found || flow.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(flow.State)) != 1 {
		return redirectToBoard(c, nil, errNoFlow)
	}

	code := c.QueryParam("code")
	if code == "" {
		return redirectToBoard(c, nil, errNoCode(c.QueryParam("error")))
	}

	session, err := r.portal.FinishOIDC(c.Request().Context(), flow, code, c.RealIP())
	return redirectToBoard(c, session, err)
}

var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

// errNoCode returns the error for a redirect without an authorization code. It contains
// code only if that is an error code as in RFC 6749.
func errNoCode(code string) error {
	if !errorCode.MatchString(code) {
		code = "no code"
	}
	return fault.Unauthenticated("The provider ended the login: " + code)
}

// redirectToBoard stores the result of the login in cookieResult and redirects the browser
// to the board.
func redirectToBoard(c echo.Context, session *identity.Session, err error) error {
	var result loginResult
	if err != nil {
		f := toFault(err)
		result.Kind, result.Message = f.Kind, f.Message
	} else {
		c.Set(contextAccount, session.User.AccountID)
		result.RefreshToken = session.RefreshToken
	}

	if err := setCookie(c, cookieResult, result, resultCookieTTL); err != nil {
		return err
	}

	return redirect(c, boardLoginPath)
}

func (r oidcRoutes) handleSession(c echo.Context) error {
	var result loginResult
	if !readAndDeleteCookie(c, cookieResult, &result) {
		return fault.Unauthenticated("There is no login to finish: log in again")
	}
	if result.Kind != "" {
		return fault.New(result.Kind, "%s", result.Message)
	}

	s, err := r.sessions.Refresh(c.Request().Context(), result.RefreshToken)
	if err != nil {
		return err
	}

	return writeSession(c, s)
}

func redirect(c echo.Context, address string) error {
	c.Response().Header().Set("Location", address)
	c.Response().WriteHeader(http.StatusSeeOther)
	return nil
}

// setCookie stores a value in a cookie, which the browser sends with requests of this
// host's pages and when it follows links to this host. The browser's user can read it.
func setCookie(c echo.Context, name string, value any, ttl time.Duration) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fault.Internal(err, "The cookie could not be written")
	}
	c.SetCookie(&http.Cookie{
		Name: name, Value: base64.RawURLEncoding.EncodeToString(text), Path: "/", MaxAge: int(ttl / time.Second),
		HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	})
	return nil
}

// readAndDeleteCookie reads a value of setCookie and deletes the cookie in the browser. ok
// is false if there is none.
func readAndDeleteCookie(c echo.Context, name string, value any) (ok bool) {
	cookie, err := c.Cookie(name)
	if err != nil {
		return false
	}
	c.SetCookie(&http.Cookie{Name: name, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true,
		SameSite: http.SameSiteLaxMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	return err == nil && json.Unmarshal(text, value) == nil
}
