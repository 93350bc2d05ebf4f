package oidc

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"trunkline/internal/fault"
)

// Flow is one login by code flow that a browser has begun. Only that browser stores it.
type Flow struct {
	State    string `json:"state"`    // comes back from the provider with the code
	Nonce    string `json:"nonce"`    // comes back in the ID token
	Verifier string `json:"verifier"` // of PKCE
}

// CanBegin reports whether the settings are complete for the code flow.
func (c *Client) CanBegin() bool { return c.settings.RedirectURL != "" }

// Begin returns a new login and the provider's address at which it begins. The
// error is fault.KindUnavailable.
func (c *Client) Begin(ctx context.Context) (flow Flow, address string, err error) {
	p, err := c.current(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	flow = Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return flow, p.oauth2.AuthCodeURL(flow.State, oidc.Nonce(flow.Nonce), oauth2.S256ChallengeOption(flow.Verifier)), nil
}

// Finish exchanges the code of a login for the ID token, and returns its user. The
// errors are those of Verify; a code that is not valid, or was used, is
// fault.KindUnauthenticated.
func (c *Client) Finish(ctx context.Context, flow Flow, code string) (Identity, error) {
	p, err := c.current(ctx)
	if err != nil {
		return Identity{}, err
	}
	tokens, err := p.oauth2.Exchange(oidc.ClientContext(ctx, c.http), code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return Identity{}, exchangeError(err)
	}
	token, _ := tokens.Extra("id_token").(string)
	if token == "" {
		return Identity{}, refusedToken("wrong_token", "The provider gives no ID token: auth.oidc.scope needs openid", nil)
	}
	verified, err := c.authenticate(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(flow.Nonce)) != 1 {
		return Identity{}, refusedToken("wrong_nonce", "The token is of another login", nil)
	}
	return c.identityOf(verified)
}

// exchangeError returns the error of a code that gave no token. Of the provider's
// response it contains only the error code, because the other text can be anything.
func exchangeError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		err = fmt.Errorf("the provider's token endpoint answers with status %d, error %.40q", refused.Response.StatusCode, refused.ErrorCode)
		switch refused.ErrorCode {
		case "invalid_grant":
			return refusedToken("wrong_code", "The login at the provider has expired or was used already: log in again", err)
		case "invalid_client", "unauthorized_client":
			return fault.Unavailable(err, requestTimeout, "The provider refuses Trunkline: check auth.oidc.client_id and auth.oidc.client_secret")
		}
	}
	return fault.Unavailable(brief(err), requestTimeout, "The provider of auth.oidc.issuer cannot be used now: it gives no token for the code")
}
