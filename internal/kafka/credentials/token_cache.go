package credentials

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// bearerToken is a token with its validity.
type bearerToken struct {
	text                   string
	requestedAt, expiresAt time.Time // expiresAt is zero: unknown, and the token is used once
}

// tokenCache shares a token between all connections. It requests a new one after half
// of the lifetime of the last, so that a session renewed late in the life of its token
// (see package kafka) gets a token with most of its lifetime left. While requests
// fail, the last token is used until it expires.
type tokenCache struct {
	fetch func(context.Context) (bearerToken, error)
	log   *slog.Logger

	mu      sync.Mutex // held during fetch: concurrent callers wait for one token
	last    bearerToken
	lastErr error     // of the last fetch
	retryAt time.Time // no fetch before it, if lastErr is not nil
}

// tokenRetryInterval is the minimum time between a failed fetch and the next one.
const tokenRetryInterval = time.Second

func newTokenCache(fetch func(context.Context) (bearerToken, error), log *slog.Logger) *tokenCache {
	return &tokenCache{fetch: fetch, log: log}
}

func (c *tokenCache) get(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()
	valid := c.last.text != "" && now.Before(c.last.expiresAt)
	if valid && now.Before(c.last.requestedAt.Add(c.last.expiresAt.Sub(c.last.requestedAt)/2)) {
		return c.last.text, nil
	}

	if c.lastErr == nil || now.After(c.retryAt) {
		// shared by all connections, so not canceled by one
		fetchCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenRequestTimeout)
		token, err := c.fetch(fetchCtx)
		cancel()

		if err == nil {
			c.last, c.lastErr = token, nil
			return token.text, nil
		}

		c.lastErr, c.retryAt = err, time.Now().Add(tokenRetryInterval)
		if valid {
			c.log.Warn("getting a new token for Kafka failed, the last one is used", "error", err,
				"expires", c.last.expiresAt)
		}
	}

	if valid {
		return c.last.text, nil
	}

	return "", fmt.Errorf("getting a token: %w", c.lastErr)
}
