package deadletter

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/keylock"
)

// AccountLetters are the dead letters that an account sees: its own and those of the accounts below it.
type AccountLetters struct {
	letters   *Letters
	tree      func() *identity.Tree
	directory feed.Directory // the tree's accounts
	scans     keylock.Locks  // by tenant, held while one of its requests scans cc.dead
}

// NewAccountLetters returns the letters of the accounts in a tree.
func NewAccountLetters(letters *Letters, tree func() *identity.Tree, directory feed.Directory) *AccountLetters {
	return &AccountLetters{letters: letters, tree: tree, directory: directory}
}

// acquireTurn waits until no other request of the account's tenant scans cc.dead: a scan reads thousands of
// records, of all tenants, and one tenant's requests are not to keep the node busy. Returns
// fault.KindUnavailable when ctx ends before.
func (d *AccountLetters) acquireTurn(ctx context.Context, account string) (release func(), err error) {
	release, err = d.scans.Lock(ctx, d.tenantOf(account))
	if err != nil {
		return nil, fault.Unavailable(err, time.Second,
			"other requests for the account's dead letters are not done yet, retry")
	}
	return release, nil
}

// tenantOf returns the highest account above the account that is not above all others, or itself.
func (d *AccountLetters) tenantOf(account string) string {
	tree := d.tree()
	root, _ := tree.OnlyRoot()
	for {
		a, ok := tree.Account(account)
		if !ok || a.ParentID == "" || a.ParentID == root.ID {
			return account
		}
		account = a.ParentID
	}
}

// newestLetters is the number of records of a partition of cc.dead that a list reads.
const newestLetters = 5000

// ListDeadLetters returns the newest of the account's open letters that the filter selects.
func (d *AccountLetters) ListDeadLetters(ctx context.Context, account string, filter Filter) (*List, error) {
	release, err := d.acquireTurn(ctx, account)
	if err != nil {
		return nil, err
	}
	defer release()
	return d.letters.List(ctx, d.visible(account, filter), ListOptions{Limit: newestLetters, NewestOf: newestLetters})
}

// FindDeadLetter returns a letter with its content, as Letters.Find does.
func (d *AccountLetters) FindDeadLetter(ctx context.Context, account string, position event.Position) (Row, error) {
	return d.letters.Find(ctx, position, d.visible(account, Filter{}))
}

// SettleDeadLetter sends one letter back or discards it, as Letters.Settle does.
func (d *AccountLetters) SettleDeadLetter(ctx context.Context, account string, outcome Outcome,
	position event.Position) error {
	release, err := d.acquireTurn(ctx, account)
	if err != nil {
		return err
	}
	defer release()
	return d.letters.Settle(ctx, outcome, []event.Position{position}, d.visible(account, Filter{}), false)
}

// RetryDeadLetters sends back the account's open letters that the filter selects, as Letters.SettleOpen does.
func (d *AccountLetters) RetryDeadLetters(ctx context.Context, account string, filter Filter) (int, error) {
	release, err := d.acquireTurn(ctx, account)
	if err != nil {
		return 0, err
	}
	defer release()
	return d.letters.SettleOpen(ctx, Retried, d.visible(account, filter))
}

// visible narrows a filter to the letters of an account and those below it. A letter of which
// nobody can say whose it is belongs to the account above all others, where there is one.
func (d *AccountLetters) visible(account string, filter Filter) Filter {
	tree := d.tree()
	root, _ := tree.OnlyRoot()
	filter.Sees = func(l *Letter) bool {
		owner, known := tree.Account(string(l.record.Key))
		// The key may be a name from a feed's rules, or none: the letter is of an account that was unknown.
		if !known {
			owner, known = tree.Account(feed.FindAccount(d.letters.deps.Feeds, d.directory, l.record))
		}
		if !known {
			return account == root.ID
		}

		return tree.Contains(account, owner.ID)
	}

	return filter
}
