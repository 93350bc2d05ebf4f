package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/internal/cli"
	"trunkline/internal/retry"
)

// The login endpoints of the events channel and of the REST API.
const (
	channelPath = "/api/v2/cc_events_channel"
	portalLogin = "/ucp/v2/login"
)

type credentials struct {
	Username   string   `json:"username"`
	Password   string   `json:"password"`
	Domain     string   `json:"domain"`
	AccountIDs []string `json:"account_ids,omitempty"` // events channel only
}

type granted struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
}

// login obtains a token. It retries a few times, counted in the caller's failures, while the
// server does not have the new accounts yet.
func login(ctx context.Context, client *http.Client, url string, who credentials) (got granted, err error) {
	for range 4 {
		if got, err = loginOnce(ctx, client, url, who); err == nil {
			return got, nil
		}
		var refused *cli.HTTPError
		if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized && refused.Status != http.StatusBadRequest {
			break
		}
		if !retry.Sleep(ctx, time.Second) {
			break
		}
	}
	return granted{}, fmt.Errorf("logging in as %s of %s: %w", who.Username, who.Domain, err)
}

func loginOnce(ctx context.Context, client *http.Client, url string, who credentials) (got granted, err error) {
	text, err := cli.PostJSON(ctx, client, url, who)
	if err != nil {
		return got, err
	}
	if err := json.Unmarshal(text, &got); err != nil || got.AccessToken == "" {
		return got, errors.New("the answer holds no access_token")
	}
	return got, nil
}
