package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/retry"
)

// The login endpoints of the events channel and of the REST API.
const (
	channelPath     = "/api/v2/cc_events_channel"
	portalLoginPath = "/ucp/v2/login"
)

// credentials is the body of a login.
type credentials struct {
	Username   string   `json:"username"`
	Password   string   `json:"password"`
	Domain     string   `json:"domain"`
	AccountIDs []string `json:"account_ids,omitempty"` // events channel only
}

type tokenResponse struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
}

// login obtains a token. It retries up to three times while the server does not have the new
// accounts yet.
func login(ctx context.Context, client *http.Client, url string, user credentials) (response tokenResponse, err error) {
	for range 4 {
		response, err = loginOnce(ctx, client, url, user)
		if err == nil {
			return response, nil
		}

		var refused *cli.HTTPError
		if !errors.As(err, &refused) ||
			refused.Status != http.StatusUnauthorized && refused.Status != http.StatusBadRequest {
			break
		}

		if !retry.Sleep(ctx, time.Second) {
			break
		}
	}

	return tokenResponse{}, fmt.Errorf("logging in as %s of %s: %w", user.Username, user.Domain, err)
}

func loginOnce(ctx context.Context, client *http.Client, url string,
	user credentials) (response tokenResponse, err error) {
	text, err := cli.PostJSON(ctx, client, url, user)
	if err != nil {
		return response, err
	}
	err = json.Unmarshal(text, &response)
	if err != nil || response.AccessToken == "" {
		return response, errors.New("the response has no access_token")
	}
	return response, nil
}
