package webhook

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"trunkline/identity"
	"trunkline/internal/masterkey"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// followInterval is how often a node looks for changes of webhooks.
const followInterval = 400 * time.Millisecond

// Accounts has the tree of accounts.
type Accounts interface{ Tree() *identity.Tree }

// registry holds the webhooks of all accounts and follows their changes.
type registry struct {
	settings Settings
	db       *sqldb.DB
	keys     *masterkey.Keyring
	accounts Accounts
	metrics  *metrics
	log      *slog.Logger

	current atomic.Pointer[hooks]

	// Of run's goroutine:
	revision int64 // -1 before the first read
	tree     *identity.Tree
	stored   []row
}

// run follows changes until ctx ends. While the database is unavailable the webhooks
// stay as they were.
func (r *registry) run(ctx context.Context) {
	failing := false
	for {
		err := r.follow(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.log.Warn("reading the webhooks failed, retrying", "error", err)
		}
		failing = err != nil
		if !retry.Sleep(ctx, followInterval) {
			return
		}
	}
}

// follow reads the webhooks again if they or the accounts have changed.
func (r *registry) follow(ctx context.Context) error {
	revision, err := readRevision(ctx, r.db)
	if err != nil {
		return err
	}
	tree := r.accounts.Tree()
	if revision == r.revision && tree == r.tree {
		return nil
	}
	if revision != r.revision {
		if r.stored, err = list(ctx, r.db, ""); err != nil {
			return err
		}
	}
	r.revision, r.tree = revision, tree
	before := r.current.Load()
	var all []*hook
	for i := range r.stored {
		if h := r.hook(&r.stored[i], before.byID[r.stored[i].ID], tree); h != nil {
			all = append(all, h)
		}
	}
	now := newHooks(all)
	r.metrics.paused.Set(float64(now.paused))
	r.current.Store(now)
	close(before.replaced)
	return nil
}

// hook returns the hook of a stored webhook: before if nothing has changed, nil if none
// of its accounts exists.
func (r *registry) hook(stored *row, before *hook, tree *identity.Tree) *hook {
	selection := identity.NewSelection(stored.AccountID, stored.Filters, tree)
	if selection == nil {
		return nil
	}
	h := &hook{row: *stored, selection: selection, suspended: stored.Status == StatusPaused}
	if before == nil || before.retries != stored.retries || before.URL != stored.URL {
		h.receiver = newReceiver(r.settings, stored)
	} else {
		h.receiver = before.receiver
	}
	if before != nil && before.sealed == stored.sealed {
		h.key = before.key
	} else if key, err := openKey(r.keys, stored); err == nil {
		h.key = key
	} else {
		h.suspended = true
		r.log.Error("a webhook's secret cannot be opened, nothing is sent", "webhook", stored.ID, "account", stored.AccountID, "error", err)
	}
	if before != nil && before.same(h) {
		return before
	}
	return h
}

// same reports whether h and other are delivered in the same way.
func (h *hook) same(other *hook) bool {
	return h.receiver == other.receiver && h.suspended == other.suspended && h.positionGeneration == other.positionGeneration && h.sealed == other.sealed && h.Format == other.Format &&
		h.Status == other.Status && h.selection.Equal(other.selection)
}
