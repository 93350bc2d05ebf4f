package api

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
)

// Portal issues, renews and revokes the tokens of everything but the events channel.
type Portal interface {
	Login(ctx context.Context, c identity.Credentials) (*identity.Session, error)
	Refresh(ctx context.Context, refreshToken string) (*identity.Session, error)
	Logout(ctx context.Context, p *identity.Principal) error
	JWKS() []byte
}

type portalRoutes struct {
	portal Portal
	auth   auth
}

type session struct {
	User         user   `json:"user"`
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int64  `json:"expires_in"`
}

type user struct {
	ID         string        `json:"id"`
	AccountID  string        `json:"account_id"`
	Username   string        `json:"username"`
	PresenceID string        `json:"presence_id"`
	Role       identity.Role `json:"role"`
}

func (p portalRoutes) login(c echo.Context) error {
	body, err := decode(c)
	if err != nil {
		return err
	}
	credentials := readCredentials(body, c)
	if err := body.Err(invalidBody); err != nil {
		return err
	}
	s, err := p.portal.Login(c.Request().Context(), credentials)
	if err != nil {
		return err
	}
	return writeSession(c, s)
}

// readCredentials reads the members that both logins have.
func readCredentials(body *object, c echo.Context) identity.Credentials {
	return identity.Credentials{
		Username: body.String("username", required),
		Password: body.String("password", required),
		Domain:   body.String("domain", required),
		Address:  c.RealIP(),
	}
}

func (p portalRoutes) refresh(c echo.Context) error {
	body, err := decode(c)
	if err != nil {
		return err
	}
	token := body.String("refresh_token", required)
	if err := body.Err(invalidBody); err != nil {
		return err
	}
	s, err := p.portal.Refresh(c.Request().Context(), token)
	if err != nil {
		return err
	}
	return writeSession(c, s)
}

func writeSession(c echo.Context, s *identity.Session) error {
	c.Set(contextAccount, s.User.AccountID)
	return writeJSON(c, http.StatusOK, session{
		User: user{
			ID: s.User.ID, AccountID: s.User.AccountID, Username: s.User.Username,
			PresenceID: s.User.PresenceID, Role: s.User.Role,
		},
		AccessToken:  s.AccessToken,
		RefreshToken: s.RefreshToken,
		ExpiresIn:    seconds(s.ExpiresIn),
	})
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

func (p portalRoutes) logout(c echo.Context) error {
	caller, err := p.auth.authenticateBearer(c, identity.AudienceAPI)
	if err != nil {
		return err
	}
	if err := p.portal.Logout(c.Request().Context(), caller); err != nil {
		return err
	}
	return noContent(c)
}

func (p portalRoutes) keySet(c echo.Context) error {
	cacheable(c)
	return writeBytes(c, http.StatusOK, "application/json", p.portal.JWKS())
}
