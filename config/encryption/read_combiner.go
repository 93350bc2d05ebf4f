package encryption

import (
	"context"
	"sync"
	"time"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// readCombiner combines concurrent reads into one statement for all their accounts, because
// the statement is most of the cost of a read.
type readCombiner struct {
	// load returns the stored configurations of the accounts.
	load func(ctx context.Context, accountIDs []string) (map[string]readResult, error)
	// writeAudit makes entries of the audit log durable.
	writeAudit func(context.Context, ...audit.Entry) error

	mu      sync.Mutex
	waiting []pendingRead
	running bool // the goroutine runBatches runs
}

type pendingRead struct {
	entry audit.Entry     // has the account to read
	done  chan readResult // of capacity 1
}

// readResult is an account's configuration, or the error of reading it.
type readResult struct {
	*state
	err error
}

const (
	maxReadBatch = 64
	readTimeout  = 30 * time.Second
)

// read returns the configuration of the entry's account, not older than the call. It
// returns after the entry, with the key's version as target, is in the audit log.
func (r *readCombiner) read(ctx context.Context, entry audit.Entry) (*state, error) {
	pending := pendingRead{entry, make(chan readResult, 1)}
	r.mu.Lock()
	r.waiting = append(r.waiting, pending)
	if !r.running {
		r.running = true
		go r.runBatches()
	}
	r.mu.Unlock()
	select {
	case got := <-pending.done:
		return got.state, got.err
	case <-ctx.Done():
		return nil, sqldb.Wrap(ctx.Err(), "reading the encryption configuration")
	}
}

// runBatches reads for the waiting callers until none waits.
func (r *readCombiner) runBatches() {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), maxReadBatch)
		batch := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		r.running = n > 0
		r.mu.Unlock()
		if n == 0 {
			return
		}
		r.finishBatch(batch)
	}
}

// finishBatch reads a batch and sends the results to its callers.
func (r *readCombiner) finishBatch(batch []pendingRead) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	results, err := r.readBatch(ctx, batch)
	for _, pending := range batch {
		if err != nil {
			pending.done <- readResult{err: err}
			continue
		}
		pending.done <- results[pending.entry.AccountID]
	}
}

// readBatch returns a result for every account of a batch, and writes the audit entries of
// the reads that succeeded.
func (r *readCombiner) readBatch(ctx context.Context, batch []pendingRead) (map[string]readResult, error) {
	ids := make([]string, len(batch))
	for i, pending := range batch {
		ids[i] = pending.entry.AccountID
	}
	results, err := r.load(ctx, ids)
	if err != nil {
		return nil, err
	}
	entries := make([]audit.Entry, 0, len(batch))
	for _, pending := range batch {
		got := results[pending.entry.AccountID]
		if got.err == nil {
			pending.entry.Target = got.auditTarget()
			entries = append(entries, pending.entry)
		}
	}
	if len(entries) == 0 {
		return results, nil
	}
	return results, r.writeAudit(ctx, entries...)
}
