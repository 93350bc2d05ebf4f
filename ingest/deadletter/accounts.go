package deadletter

import (
	"context"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/feed"
)

// AccountLetters are the dead letters that an account sees: its own and those of the accounts below it.
type AccountLetters struct {
	letters   *Letters
	tree      func() *identity.Tree
	directory feed.Directory // the tree's accounts
}

// NewAccountLetters returns the letters of the accounts in a tree.
func NewAccountLetters(letters *Letters, tree func() *identity.Tree, directory feed.Directory) *AccountLetters {
	return &AccountLetters{letters, tree, directory}
}

// newestLetters is the number of records of a partition of cc.dead that a list reads.
const newestLetters = 5000

// ListDeadLetters returns the newest of the account's open letters that the filter selects.
func (d *AccountLetters) ListDeadLetters(ctx context.Context, account string, filter Filter) (*List, error) {
	return d.letters.List(ctx, d.visible(account, filter), ListOptions{Limit: newestLetters, NewestOf: newestLetters})
}

// FindDeadLetter returns a letter with its content, as Letters.Find does.
func (d *AccountLetters) FindDeadLetter(ctx context.Context, account string, position event.Position) (Row, error) {
	return d.letters.Find(ctx, position, d.visible(account, Filter{}))
}

// SettleDeadLetter sends one letter back or discards it, as Letters.Settle does.
func (d *AccountLetters) SettleDeadLetter(ctx context.Context, account string, outcome Outcome, position event.Position) error {
	return d.letters.Settle(ctx, outcome, []event.Position{position}, d.visible(account, Filter{}), false)
}

// RetryDeadLetters sends back the account's open letters that the filter selects, as Letters.SettleOpen does.
func (d *AccountLetters) RetryDeadLetters(ctx context.Context, account string, filter Filter) (int, error) {
	return d.letters.SettleOpen(ctx, Retried, d.visible(account, filter))
}

// visible narrows a filter to the letters of an account and those below it. A letter of which
// nobody can say whose it is belongs to the account above all others, where there is one.
func (d *AccountLetters) visible(account string, filter Filter) Filter {
	tree := d.tree()
	root, _ := tree.OnlyRoot()
	filter.Sees = func(l *Letter) bool {
		owner, known := tree.Account(string(l.record.Key))
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
