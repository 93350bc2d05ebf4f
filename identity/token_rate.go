package identity

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

// tokenKind is a way to get tokens. Each is counted by itself, so that a stolen session that
// is refreshed without end does not keep its user from logging in.
type tokenKind string

const (
	kindLoginAttempt tokenKind = "attempts"       // of a username from an address, whether or not the user exists
	kindLogin        tokenKind = "tokens.login"   // of a user, by password or provider
	kindChannel      tokenKind = "tokens.channel" // channel tokens of a user
	kindRefresh      tokenKind = "tokens.refresh" // of a user's sessions
	kindKeyExchange  tokenKind = "tokens.key"     // channel tokens of an API key
)

const (
	tokenWindow = time.Minute
	// attemptsFactor is the number of kinds of tokens that a password gets.
	attemptsFactor = 3
)

// limitTokens counts a token that the user, key or other holder with the id asks for. Returns
// fault.KindLimited if it had perMinute in the last minute: each writes rows.
func limitTokens(ctx context.Context, limiter Limiter, kind tokenKind, id string, perMinute int) error {
	wait := limiter.Fail(ctx, Limit{subjectHash(string(kind), id), perMinute, tokenWindow})
	if wait <= 0 {
		return nil
	}
	return fault.Limited(wholeSeconds(wait), "Too many logins or refreshes: use a token until it expires")
}

// wholeSeconds rounds d up to seconds.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
