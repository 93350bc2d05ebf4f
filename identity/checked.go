package identity

import (
	"crypto/sha256"
)

// checkedTokens remembers the claims of tokens whose signature was found right,
// which costs far more than all else that a request is asked. It belongs to one
// snapshot of the directory: with its signing keys it is forgotten. Whatever
// can change about a token (time, revocation, its account) is asked each time.
type checkedTokens struct {
	*cache[[sha256.Size]byte, *claims] // by the token's hash, so that memory holds no token
}

const (
	maxChecked       = 10_000 // some 10 MB
	maxCheckedLength = 2 << 10
)

func newCheckedTokens() checkedTokens {
	return checkedTokens{newCache[[sha256.Size]byte, *claims](maxChecked)}
}

// find returns what put was given for the token. It must not be changed.
func (t checkedTokens) find(token string) (*claims, bool) {
	if len(token) > maxCheckedLength {
		return nil, false
	}
	return t.cache.find(sha256.Sum256([]byte(token)))
}

func (t checkedTokens) put(token string, c *claims) {
	if len(token) <= maxCheckedLength {
		t.cache.put(sha256.Sum256([]byte(token)), c)
	}
}
