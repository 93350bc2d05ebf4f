package fanout

import (
	"sync"
	"weak"

	"trunkline/identity"
)

// tokens shares one principal and one filter between the subscribers of a
// token. It holds weak pointers.
type tokens struct {
	mu    sync.Mutex
	known map[string]token
	swept int // tokens known after the last clearing out
}

type token struct {
	principal weak.Pointer[identity.Principal]
	filter    weak.Pointer[filter]
}

// share returns what an earlier subscriber of the same token holds, if it is
// the same. Tokens never change; their filter does, with the account tree.
func (t *tokens) share(p *identity.Principal, f *filter) (*identity.Principal, *filter) {
	if f == nil {
		return p, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if have, ok := t.known[p.TokenID]; ok {
		principal, filter := have.principal.Value(), have.filter.Value()
		if principal != nil && filter != nil && filter.equal(f) {
			return principal, filter
		}
	}
	t.sweep()
	t.known[p.TokenID] = token{weak.Make(p), weak.Make(f)}
	return p, f
}

// sweep clears out tokens that nobody holds, each time they have doubled.
func (t *tokens) sweep() {
	if t.known == nil {
		t.known = make(map[string]token)
	}
	if len(t.known) < 2*t.swept+64 {
		return
	}
	for id, have := range t.known {
		if have.filter.Value() == nil {
			delete(t.known, id)
		}
	}
	t.swept = len(t.known)
}
