package fanout

import (
	"context"
	"fmt"
	"sync"
	"time"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// memoryDirectory knows tokens by heart.
type memoryDirectory struct {
	mu           sync.Mutex
	tree         *identity.Tree
	tokens       map[string]*identity.Principal
	revoked      map[string]bool
	change       chan struct{}
	visibilities map[string]*identity.Visibility // by token; others see everything
}

// newDirectory has the tree root > shop > kiosk, and other beside it.
func newDirectory() *memoryDirectory {
	return &memoryDirectory{
		tree: identity.NewTree(
			identity.Account{ID: "root", Name: "root", Domain: "root"},
			identity.Account{ID: "shop", Name: "shop", Domain: "shop", ParentID: "root"},
			identity.Account{ID: "kiosk", Name: "kiosk", Domain: "kiosk", ParentID: "shop"},
			identity.Account{ID: "other", Name: "other", Domain: "other"}),
		tokens: make(map[string]*identity.Principal), revoked: make(map[string]bool),
		change: make(chan struct{}), visibilities: make(map[string]*identity.Visibility),
	}
}

func (d *memoryDirectory) token(account string, accounts, types []string) string {
	return d.filteredToken(account, identity.Filter{AccountIDs: accounts, EventTypes: types})
}

func (d *memoryDirectory) filteredToken(account string, f identity.Filter) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	token := fmt.Sprintf("t%d", len(d.tokens))
	d.tokens[token] = &identity.Principal{UserID: "u-" + account, AccountID: account, TokenID: token,
		Audience: identity.AudienceEvents, ExpiresAt: time.Now().Add(time.Hour), Filter: f}
	return token
}

func (d *memoryDirectory) Authenticate(_ context.Context, token string,
	_ ...identity.Audience) (*identity.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.tokens[token]
	if !ok || d.revoked[token] {
		return nil, fault.Unauthenticated("bad token")
	}
	return p, nil
}

func (d *memoryDirectory) CheckPrincipal(p *identity.Principal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.revoked[p.TokenID] {
		return fault.Forbidden("revoked")
	}
	return nil
}

func (d *memoryDirectory) Tree() *identity.Tree {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tree
}

func (d *memoryDirectory) VisibilityOf(p *identity.Principal) *identity.Visibility {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.visibilities[p.TokenID]; ok {
		return s
	}
	return identity.NewVisibility(identity.RoleUser, p.AccountID, "", identity.Limits{})
}

func (d *memoryDirectory) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change
}

func (d *memoryDirectory) FindAccount(_ context.Context, id string) (identity.Account, bool, error) {
	account, ok := d.Tree().Account(id)
	return account, ok, nil
}

func (d *memoryDirectory) edit(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	close(d.change)
	d.change = make(chan struct{})
}
