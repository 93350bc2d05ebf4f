package fanout

import (
	"sync"
	"weak"

	"trunkline/identity"
)

// sharedPrincipals lets the subscribers of a token share one principal and one filter. It holds
// weak pointers.
type sharedPrincipals struct {
	mu      sync.Mutex
	byToken map[string]sharedPrincipal
	swept   int // number of tokens after the last sweep
}

type sharedPrincipal struct {
	principal weak.Pointer[identity.Principal]
	filter    weak.Pointer[filter]
}

// share returns the principal and filter of an earlier subscriber of the same token,
// if they are equal. Tokens never change; their filter changes with the account tree.
func (t *sharedPrincipals) share(p *identity.Principal, f *filter) (*identity.Principal, *filter) {
	if f == nil {
		return p, nil
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	if have, ok := t.byToken[p.TokenID]; ok {
		principal, shared := have.principal.Value(), have.filter.Value()
		if principal != nil && shared != nil && shared.equal(f) {
			return principal, shared
		}
	}

	if t.byToken == nil {
		t.byToken = make(map[string]sharedPrincipal)
	}

	t.sweep()
	t.byToken[p.TokenID] = sharedPrincipal{weak.Make(p), weak.Make(f)}
	return p, f
}

// sweep removes unreferenced tokens each time their number has doubled.
func (t *sharedPrincipals) sweep() {
	if len(t.byToken) < 2*t.swept+64 {
		return
	}

	for id, have := range t.byToken {
		if have.filter.Value() == nil {
			delete(t.byToken, id)
		}
	}

	t.swept = len(t.byToken)
}
