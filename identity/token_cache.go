package identity

import (
	"crypto/sha256"
)

// tokenCache has the claims of tokens with a verified signature; the verification is the
// most expensive part of authentication. It belongs to one load of the signing
// keys, so that it is discarded when they change. Expiry, revocation and account
// state are checked on every request.
type tokenCache struct {
	*boundedCache[[sha256.Size]byte, *claims] // by the token's hash, so that no token is kept in memory
}

const (
	maxCachedTokens     = 10_000 // about 10 MB
	maxCachedTokenBytes = 2 << 10
)

func newTokenCache() tokenCache {
	return tokenCache{newBoundedCache[[sha256.Size]byte, *claims](maxCachedTokens)}
}

// find returns the cached claims of the token. Callers must not modify them.
func (t tokenCache) find(token string) (*claims, bool) {
	if len(token) > maxCachedTokenBytes {
		return nil, false
	}
	return t.boundedCache.find(sha256.Sum256([]byte(token)))
}

func (t tokenCache) put(token string, c *claims) {
	if len(token) <= maxCachedTokenBytes {
		t.boundedCache.put(sha256.Sum256([]byte(token)), c)
	}
}
