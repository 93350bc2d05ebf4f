package kazoo

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

const (
	syncInterval    = time.Minute
	syncTimeout     = 10 * time.Second
	minSyncInterval = 5 * time.Second // for an unknown account in a message
	shownIDLength   = 8               // characters of the id in a name that would not be unique
)

// Directory has the accounts. *identity.Directory implements it.
type Directory interface {
	// Tree returns the current account tree.
	Tree() *identity.Tree
	// CreateAccount creates an account. Its id, name and domain must not be the id, name or domain
	// of another account, because each of them identifies one account.
	CreateAccount(ctx context.Context, n identity.NewAccount) (identity.Account, error)
	// UpdateAccount renames an account, changes its domain and moves it with all accounts below it.
	// The rules of CreateAccount apply. The hashes of phones' passwords include the domain, so
	// these passwords must be set again after a change of the domain.
	UpdateAccount(ctx context.Context, id string, u identity.AccountUpdate) (identity.Account, error)
}

// accountExists reports whether there is an account with Kazoo's id.
func (p *platform) accountExists(id string) bool {
	if p.directory == nil || id == "" {
		return false
	}
	_, ok := p.directory.Tree().Account(id)
	return ok
}

// syncUnknownAccount requests the accounts from Crossbar if a message has an unknown one, and reports whether
// it did. It does not wait for a sync under way, which may take syncTimeout.
func (p *platform) syncUnknownAccount(ctx context.Context, id string) bool {
	if !p.syncsAccounts || p.accountExists(id) {
		return false
	}

	if !p.syncing.TryLock() {
		return false
	}
	defer p.syncing.Unlock()

	if time.Since(p.syncedAt) < minSyncInterval {
		return false
	}

	p.syncAccountsLocked(ctx)
	return true
}

// runAccountSync runs syncAccounts periodically until ctx ends.
func (p *platform) runAccountSync(ctx context.Context) {
	for range retry.Ticks(ctx, syncInterval) {
		p.syncAccounts(ctx)
	}
}

// syncAccounts makes the accounts equal to Crossbar's. Failures are logged and retried by the next
// call.
func (p *platform) syncAccounts(ctx context.Context) {
	p.syncing.Lock()
	defer p.syncing.Unlock()
	p.syncAccountsLocked(ctx)
}

// syncAccountsLocked is syncAccounts for a caller that has locked syncing.
func (p *platform) syncAccountsLocked(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	// Also of an attempt that fails, and at its end: a Crossbar that hangs is not asked again at once.
	defer func() { p.syncedAt = time.Now() }()

	all, err := accountsBelow(ctx, p.crossbar)
	if err != nil {
		if ctx.Err() == nil || context.Cause(ctx) == context.DeadlineExceeded {
			p.log.WarnContext(ctx, "reading the accounts from Crossbar failed", "error", err)
		}
		return
	}

	p.setRealms(all)
	// Parents first.
	slices.SortStableFunc(all, func(a, b kazooAccount) int { return cmp.Compare(len(a.Tree), len(b.Tree)) })
	differences := make(map[string]string) // by account id
	found := make(map[string]bool)

	for _, a := range all {
		found[a.ID] = true
		if err := p.syncAccount(ctx, all[0].ID, a); err != nil {
			differences[a.ID] = err.Error()
		}
	}

	for _, known := range p.directory.Tree().Accounts() {
		path := p.directory.Tree().Path(known.ID)
		if !found[known.ID] && isKazooID(known.ID) && slices.Contains(path, all[0].ID) {
			differences[known.ID] = "Crossbar does not have it any more; delete it with trunkline account delete"
		}
	}

	// Once, not with every sync.
	for id, problem := range differences {
		if p.reportedDifferences[id] != problem {
			p.log.WarnContext(ctx, "account differs from Crossbar's", "account_id", id, "problem", problem)
		}
	}

	p.reportedDifferences = differences
}

// Reasons for not changing an account.
var (
	errForeignID = errors.New("its id is not one of Kazoo's")
	errElsewhere = errors.New("an account with its id is not below that of the API key")
	errNotBelow  = errors.New("the account above it is not below that of the API key")
)

// syncAccount makes one account equal to Crossbar's. root is the account of the API key. Crossbar
// defines that account and those below it only: other accounts are neither changed nor used as parents.
func (p *platform) syncAccount(ctx context.Context, root string, a kazooAccount) error {
	if !isKazooID(a.ID) {
		return errForeignID
	}

	tree := p.directory.Tree()
	known, exists := tree.Account(a.ID)
	other, found := tree.ByDomain(a.Realm)
	if found && (!exists || other.ID == a.ID && !p.followsCrossbar(tree, root, a.ID)) {
		return nil // the account with this domain is used for it
	}

	parent := ""
	switch {
	case a.ID != root:
		above := cmp.Or(lastOf(a.Tree), root)
		parent = p.localAccountID(tree, above)
		if exists && !p.followsCrossbar(tree, root, a.ID) {
			return errElsewhere
		}

		_, parentExists := tree.Account(parent)
		if parentExists && parent == above && !p.followsCrossbar(tree, root, parent) {
			return errNotBelow
		}
	case exists:
		parent = known.ParentID // the position in our tree is not changed
	}

	names := []string{a.Name, a.Name + " (" + a.ID[:min(len(a.ID), shownIDLength)] + ")", a.ID}
	// It has got one of the substitutes, and needs it still.
	if exists && slices.Contains(names[1:], known.Name) && isNameTaken(tree, a) {
		names = []string{known.Name}
	}

	var err error
	for _, name := range names { // Kazoo's need not be unique
		if exists && known.Name == name && known.Domain == strings.ToLower(a.Realm) && known.ParentID == parent {
			return nil
		}

		if exists {
			_, err = p.directory.UpdateAccount(ctx, a.ID,
				identity.AccountUpdate{Name: name, Domain: a.Realm, Parent: parent, FromFeed: true})
		} else {
			_, err = p.directory.CreateAccount(ctx,
				identity.NewAccount{ID: a.ID, Name: name, Domain: a.Realm, Parent: parent, FromFeed: true})
		}

		kind := fault.KindOf(err)
		// Only the name is tried again: taken, or not one of ours.
		if err == nil || kind != fault.KindConflict && kind != fault.KindInvalid {
			return err
		}
	}

	return err
}

// followsCrossbar reports whether an account is that of the API key or below it, and so follows Crossbar.
func (p *platform) followsCrossbar(tree *identity.Tree, root, id string) bool {
	return tree.Contains(p.localAccountID(tree, root), id)
}

// isNameTaken reports whether another account has the name of a.
func isNameTaken(tree *identity.Tree, a kazooAccount) bool {
	other, ok := tree.Resolve(a.Name)
	return ok && other.ID != a.ID
}

// localAccountID returns the id of our account for a Kazoo account id: the same id, or that of the account
// whose domain is the Kazoo account's realm.
func (p *platform) localAccountID(tree *identity.Tree, id string) string {
	if _, ok := tree.Account(id); ok {
		return id
	}

	realm := p.realmOf(id)
	if other, ok := tree.ByDomain(realm); ok && realm != "" {
		return other.ID
	}

	return id
}

// setRealms records the realms of Crossbar's accounts.
func (p *platform) setRealms(all []kazooAccount) {
	realms := make(map[string]string, len(all))
	for _, a := range all {
		realms[a.ID] = a.Realm
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.realms = realms
}

func lastOf(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

// isKazooID reports whether an id has Kazoo's form: 32 hexadecimal digits.
func isKazooID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}
