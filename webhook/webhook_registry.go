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

// pollInterval is the time between two checks of a node for changes of webhooks.
const pollInterval = 400 * time.Millisecond

// Accounts has the tree of accounts.
type Accounts interface {
	// Tree returns the current tree, which does not change.
	Tree() *identity.Tree
}

// registry holds the webhooks of all accounts and follows their changes.
type registry struct {
	settings Settings
	db       *sqldb.DB
	keys     *masterkey.Keyring
	accounts Accounts
	metrics  *metrics
	log      *slog.Logger

	current atomic.Pointer[webhookSnapshot]

	// Used by run's goroutine only:
	changes  *sqldb.ChangeWatch
	revision int64 // -1 before the first read
	tree     *identity.Tree
	rows     []webhookRow
}

// run follows changes until ctx ends. While the database is unavailable it keeps the
// current snapshot.
func (r *registry) run(ctx context.Context) {
	failing := false
	for range retry.Rounds(ctx, pollInterval) {
		err := r.reload(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			r.log.Warn("reading the webhooks failed, retrying", "error", err)
		}
		failing = err != nil
	}
}

// reload reads the webhooks again if they or the accounts have changed.
func (r *registry) reload(ctx context.Context) error {
	before := r.revision
	err := r.changes.Poll(func() error { return r.readRows(ctx) })
	if err != nil {
		return err
	}

	tree := r.accounts.Tree()
	if r.revision == before && tree == r.tree {
		return nil
	}

	r.tree = tree

	previous := r.current.Load()
	var all []*loadedWebhook
	for i := range r.rows {
		h := r.buildHook(&r.rows[i], previous.byID[r.rows[i].ID], tree)
		if h != nil {
			all = append(all, h)
		}
	}

	current := newWebhookSnapshot(all)
	r.metrics.pausedNow.Set(float64(current.pausedCount))
	r.current.Store(current)
	// After the store, so that whom it wakes finds the new one.
	close(previous.replaced)

	return nil
}

// readRows reads the stored webhooks if they have changed.
func (r *registry) readRows(ctx context.Context) error {
	revision, err := readRevision(ctx, r.db)
	if err != nil || revision == r.revision {
		return err
	}

	rows, err := selectRows(ctx, r.db, "")
	if err != nil {
		return err
	}

	r.rows, r.revision = rows, revision
	return nil
}

// buildHook returns the hook of a stored webhook: previous if nothing has changed, nil if
// none of its accounts exists.
func (r *registry) buildHook(stored *webhookRow, previous *loadedWebhook, tree *identity.Tree) *loadedWebhook {
	selection := identity.NewSelection(stored.AccountID, stored.Filters, tree)
	if selection == nil {
		return nil
	}

	h := &loadedWebhook{webhookRow: *stored, selection: selection, suspended: stored.Status == StatusPaused}
	if previous == nil || previous.retries != stored.retries || previous.URL != stored.URL {
		h.receiver = newReceiver(r.settings, stored)
	} else {
		h.receiver = previous.receiver
	}

	// A key that could not be opened is tried again: without one nothing may be signed.
	if previous != nil && previous.key != nil && previous.sealedKey == stored.sealedKey {
		h.key = previous.key
	} else {
		key, err := openKey(r.keys, stored)
		if err != nil {
			h.suspended = true
			r.log.Error("a webhook's secret cannot be opened, nothing is sent",
				"webhook", stored.ID, "account", stored.AccountID, "error", err)
		}

		h.key = key
	}

	if previous != nil && previous.deliversLike(h) {
		return previous
	}

	return h
}

// deliversLike reports whether the delivery to h does not differ from that to other.
func (h *loadedWebhook) deliversLike(other *loadedWebhook) bool {
	return h.receiver == other.receiver && h.suspended == other.suspended &&
		h.positionGeneration == other.positionGeneration && h.sealedKey == other.sealedKey &&
		h.Format == other.Format &&
		h.Status == other.Status && h.selection.Equal(other.selection)
}
