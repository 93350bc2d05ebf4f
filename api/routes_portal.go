package api

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
)

// Portal logs users in at the portal and changes what they log in with.
type Portal interface {
	// Login checks the credentials and creates a session with tokens for the api audience. A wrong
	// user, domain or password takes the same time and returns the same error. After too many of
	// them the error is fault.KindLimited.
	Login(ctx context.Context, c identity.LoginRequest) (*identity.Session, error)
	ProviderLogins
	// LoginByToken is Login with an ID or access token of the OpenID Connect provider. The session
	// ends when the token expires.
	LoginByToken(ctx context.Context, token, address string) (*identity.Session, error)
	// ChangePassword sets the password of the principal's user and ends the user's other portal
	// sessions and channel logins by password. A wrong current password counts as a failed login
	// from the address.
	ChangePassword(ctx context.Context, p *identity.Principal, current, next, address string) error
	// BeginOTP creates a secret for the user of the credentials, to be confirmed with ConfirmOTP. A
	// user who already has one-time passwords must give one, or a recovery code.
	BeginOTP(ctx context.Context, c identity.LoginRequest) (identity.OTPEnrolment, error)
	// ConfirmOTP completes an enrolment with a one-time password of the new secret. Later logins
	// require one. It returns recovery codes, which replace earlier ones.
	ConfirmOTP(ctx context.Context, c identity.LoginRequest) (recoveryCodes []string, err error)
	// OTPRequired reports whether RequireOTP is set for the account.
	OTPRequired(ctx context.Context, accountID string) (bool, error)
	// RequireOTP sets whether an account's administrators need one-time passwords to log in. If
	// they do, administrators without a secret can only enrol.
	RequireOTP(ctx context.Context, accountID string, required bool) error
}

// Sessions renews and revokes the tokens of portal logins.
type Sessions interface {
	// Refresh exchanges a refresh token for a new pair, once. A second use revokes the whole
	// family: the login, every refresh since, and their access tokens.
	Refresh(ctx context.Context, refreshToken string) (*identity.Session, error)
	// Logout revokes the principal's token, and its family if it has one.
	Logout(ctx context.Context, p *identity.Principal) error
	// JWKS returns the JSON Web Key Set for the verification of tokens. Callers must not modify it.
	JWKS() []byte
}

type portalRoutes struct {
	portal   Portal
	sessions Sessions
}

type sessionView struct {
	User         userFields `json:"user"`
	AccessToken  string     `json:"access_token"`
	RefreshToken string     `json:"refresh_token"`
	ExpiresIn    int64      `json:"expires_in"`
}

type userFields struct {
	ID         string        `json:"id"`
	AccountID  string        `json:"account_id"`
	Username   string        `json:"username"`
	PresenceID string        `json:"presence_id"`
	Role       identity.Role `json:"role"`
}

func (p portalRoutes) handleLogin(c echo.Context) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	body = body.withoutNulls()
	var sent credentials
	if p.portal.HasOIDC() && !hasPassword(body) {
		sent, err = requestCredentials(c.Request())
		if err != nil {
			return err
		}
	}

	var login identity.LoginRequest
	if sent.token == "" {
		login = readLogin(body, c)
	}
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	var s *identity.Session
	if sent.token != "" {
		s, err = p.portal.LoginByToken(c.Request().Context(), sent.token, c.RealIP())
	} else {
		s, err = p.portal.Login(c.Request().Context(), login)
	}

	if err != nil {
		return err
	}

	return writeSession(c, s)
}

// readLogin reads the members of a login with a password, whose domain may be absent.
func readLogin(body *jsonObject, c echo.Context) identity.LoginRequest {
	return readCredentialsWith(requirement(body.Has("domain")), body, c)
}

// readCredentials reads the members of a request with a password that is no login.
func readCredentials(body *jsonObject, c echo.Context) identity.LoginRequest {
	return readCredentialsWith(required, body, c)
}

func readCredentialsWith(domain requirement, body *jsonObject, c echo.Context) identity.LoginRequest {
	return identity.LoginRequest{
		Username: body.String("username", required),
		Password: body.String("password", required),
		Domain:   body.String("domain", domain),
		OTP:      body.String("otp", optional),
		Address:  c.RealIP(),
	}
}

func (p portalRoutes) handleRefresh(c echo.Context) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	token := body.String("refresh_token", required)
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	s, err := p.sessions.Refresh(c.Request().Context(), token)
	if err != nil {
		return err
	}

	return writeSession(c, s)
}

func writeSession(c echo.Context, s *identity.Session) error {
	c.Set(contextAccount, s.User.AccountID)
	return writeJSON(c, http.StatusOK, sessionView{
		User:         viewUserFields(s.User),
		AccessToken:  s.AccessToken,
		RefreshToken: s.RefreshToken,
		ExpiresIn:    seconds(s.ExpiresIn),
	})
}

func viewUserFields(u identity.User) userFields {
	return userFields{ID: u.ID, AccountID: u.AccountID, Username: u.Username, PresenceID: u.PresenceID, Role: u.Role}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func (p portalRoutes) handleLogout(c echo.Context, caller *identity.Principal) error {
	return noContent(c, p.sessions.Logout(c.Request().Context(), caller))
}

func (p portalRoutes) handleChangePassword(c echo.Context, caller *identity.Principal) error {
	body, err := decode(c)
	if err != nil {
		return err
	}
	current, next := body.String("current", required), body.String("new", required)
	if err := body.Err(invalidBody); err != nil {
		return err
	}
	return noContent(c, p.portal.ChangePassword(c.Request().Context(), caller, current, next, c.RealIP()))
}

// handleEnrolOTP begins an enrolment, handleConfirmOTP ends it. Both require credentials and no token,
// because a user who must enrol gets no token before.
func (p portalRoutes) handleEnrolOTP(c echo.Context) error {
	credentials, err := decodeCredentials(c)
	if err != nil {
		return err
	}
	enrolment, err := p.portal.BeginOTP(c.Request().Context(), credentials)
	return respond(c, http.StatusOK, struct {
		Secret string `json:"secret"`
		URI    string `json:"uri"`
	}{enrolment.Secret, enrolment.URI}, err)
}

func (p portalRoutes) handleConfirmOTP(c echo.Context) error {
	credentials, err := decodeCredentials(c)
	if err != nil {
		return err
	}
	codes, err := p.portal.ConfirmOTP(c.Request().Context(), credentials)
	return respond(c, http.StatusOK, struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}{codes}, err)
}

func decodeCredentials(c echo.Context) (identity.LoginRequest, error) {
	body, err := decode(c)
	if err != nil {
		return identity.LoginRequest{}, err
	}
	credentials := readCredentials(body, c)
	return credentials, body.Err(invalidBody)
}

func (p portalRoutes) handleKeySet(c echo.Context) error {
	allowCaching(c)
	return writeBytes(c, http.StatusOK, "application/json", p.sessions.JWKS())
}
