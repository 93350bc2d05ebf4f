package deadletter

import (
	"context"
	"testing"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// The requests of one tenant, from whichever of its accounts, wait for each other, and for no
// other tenant's.
func TestATenantsRequestsTakeTurns(t *testing.T) {
	account := func(id, parent string) identity.Account {
		return identity.Account{ID: id, Name: id, Domain: id, ParentID: parent}
	}
	tree := identity.NewTree(account("root", ""), account("acme", "root"), account("sub", "acme"),
		account("below", "sub"), account("other", "root"))
	d := NewAccountLetters(nil, func() *identity.Tree { return tree }, nil)
	release, err := d.acquireTurn(t.Context(), "below")
	if err != nil {
		t.Fatal(err)
	}

	endedCtx, cancel := context.WithCancel(t.Context()) // nobody waits under it
	cancel()

	for _, one := range []string{"acme", "sub", "below"} {
		if _, err := d.acquireTurn(endedCtx, one); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("%s: %v", one, err)
		}
	}

	for _, another := range []string{"other", "root"} {
		if _, err := d.acquireTurn(t.Context(), another); err != nil {
			t.Errorf("%s: %v", another, err)
		}
	}

	release()
	if _, err := d.acquireTurn(t.Context(), "acme"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
