package identity

import (
	"crypto/sha256"
	"sync"
)

// checkedTokens remembers the claims of tokens whose signature was found right,
// which costs far more than all else that a request is asked. It belongs to one
// snapshot of the directory: with its signing keys it is forgotten. Whatever
// can change about a token (time, revocation, its account) is asked each time.
type checkedTokens struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*claims // by the token's hash, so that memory holds no token
}

const (
	maxChecked       = 10_000 // some 10 MB; then it begins anew
	maxCheckedLength = 2 << 10
)

func newCheckedTokens() *checkedTokens {
	return &checkedTokens{all: make(map[[sha256.Size]byte]*claims)}
}

// find returns what put was given for the token. It must not be changed.
func (t *checkedTokens) find(token string) (*claims, bool) {
	if len(token) > maxCheckedLength {
		return nil, false
	}
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.all[hash]
	return c, ok
}

func (t *checkedTokens) put(token string, c *claims) {
	if len(token) > maxCheckedLength {
		return
	}
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.all) >= maxChecked {
		clear(t.all)
	}
	t.all[hash] = c
}
