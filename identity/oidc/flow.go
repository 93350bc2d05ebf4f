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

// Flow is the state of one login by code flow. Only the browser that began it stores it.
type Flow struct {
	State    string `json:"state"`    // the provider's redirect must have it
	Nonce    string `json:"nonce"`    // the ID token must have it
	Verifier string `json:"verifier"` // code_verifier of PKCE
}

// CanBegin reports whether the settings are complete for the code flow.
func (c *Client) CanBegin() bool { return c.settings.RedirectURL != "" }

// Begin returns a new login and the provider's authorization URL for it. The error is
// fault.KindUnavailable.
func (c *Client) Begin(ctx context.Context) (flow Flow, address string, err error) {
	p, err := c.currentProvider(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	flow = Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return flow, p.oauth2.AuthCodeURL(flow.State, oidc.Nonce(flow.Nonce), oauth2.S256ChallengeOption(flow.Verifier)),
		nil
}

// Finish exchanges the code of a login for the ID token, and returns its user. Returns
// the errors of Verify, and fault.KindUnauthenticated for a code that is invalid or was
// used already.
func (c *Client) Finish(ctx context.Context, flow Flow, code string) (Identity, error) {
	p, err := c.currentProvider(ctx)
	if err != nil {
		return Identity{}, err
	}

	tokens, err := p.oauth2.Exchange(oidc.ClientContext(ctx, c.http), code, oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return Identity{}, exchangeError(err)
	}

	token, _ := tokens.Extra("id_token").(string)
	if token == "" {
		return Identity{},
			invalidToken("wrong_token", "The provider returned no ID token: auth.oidc.scope needs openid", nil)
	}

	verified, err := c.verifyToken(ctx, token)
	if err != nil {
		return Identity{}, err
	}

	if subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(flow.Nonce)) != 1 {
		return Identity{}, invalidToken("wrong_nonce", "The token is of another login", nil)
	}

	return c.parseIdentity(verified)
}

// exchangeError returns the error of a failed exchange of a code. Of the provider's
// response it contains only the error code, because the other text is arbitrary.
func exchangeError(err error) error {
	var retrieveErr *oauth2.RetrieveError
	if errors.As(err, &retrieveErr) && retrieveErr.Response != nil {
		err = fmt.Errorf("the provider's token endpoint answers with status %d, error %.40q",
			retrieveErr.Response.StatusCode, retrieveErr.ErrorCode)
		switch retrieveErr.ErrorCode {
		case "invalid_grant":
			return invalidToken("wrong_code", "The login at the provider has expired or was used already: log in again",
				err)
		case "invalid_client", "unauthorized_client":
			return fault.Unavailable(err, requestTimeout,
				"The provider refuses Trunkline: check auth.oidc.client_id and auth.oidc.client_secret")
		}
	}

	return fault.Unavailable(truncateError(err), requestTimeout,
		"The provider of auth.oidc.issuer cannot be used now: it gives no token for the code")
}
