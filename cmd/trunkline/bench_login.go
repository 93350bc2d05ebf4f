package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"trunkline/internal/loadtest"
)

const channelPath = "/api/v2/cc_events_channel"

// groups logs in for every group of subscribers: one for each account, or one
// for all.
func (b *bench) groups(ctx context.Context, client *http.Client, a *benchAccounts) ([]loadtest.Group, error) {
	if b.everyAccount {
		token, err := b.login(ctx, client, a, a.ids)
		return []loadtest.Group{{Token: token, Sockets: b.subscribers, Streams: len(a.ids)}}, err
	}
	var groups []loadtest.Group
	for i, id := range a.ids {
		token, err := b.login(ctx, client, a, []string{id})
		if err != nil {
			return nil, err
		}
		sockets := b.subscribers / len(a.ids)
		if i < b.subscribers%len(a.ids) {
			sockets++
		}
		groups = append(groups, loadtest.Group{Token: token, Sockets: sockets, First: i, Streams: 1})
	}
	return groups, nil
}

// login obtains a token for the accounts. A server that does not know them yet
// is asked again, a few times: failures are counted there.
func (b *bench) login(ctx context.Context, client *http.Client, a *benchAccounts, ids []string) (token string, err error) {
	for range 4 {
		if token, err = b.loginOnce(ctx, client, a, ids); err == nil {
			return token, nil
		}
		var refused *answer
		if !errors.As(err, &refused) || refused.status != http.StatusUnauthorized && refused.status != http.StatusBadRequest {
			break
		}
		if !pause(ctx, time.Second) {
			break
		}
	}
	return "", fmt.Errorf("logging in as %s of %s: %w", a.username, a.domain, err)
}

func (b *bench) loginOnce(ctx context.Context, client *http.Client, a *benchAccounts, ids []string) (token string, err error) {
	body, err := json.Marshal(map[string]any{
		"username": a.username, "password": a.password, "domain": a.domain, "account_ids": ids,
	})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+channelPath+"/login", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", &answer{status: response.StatusCode, body: string(text)}
	}
	var granted struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(text, &granted); err != nil || granted.AccessToken == "" {
		return "", errors.New("the answer holds no access_token")
	}
	return granted.AccessToken, nil
}
