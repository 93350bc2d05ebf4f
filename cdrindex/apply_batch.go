package cdrindex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"trunkline/internal/sqldb"
)

// callKey identifies a call. There is one row for each.
type callKey struct{ account, call string }

func (e *entry) key() callKey { return callKey{e.row.AccountID, e.row.CallID} }

func (k callKey) compare(o callKey) int {
	return cmp.Or(cmp.Compare(k.account, o.account), cmp.Compare(k.call, o.call))
}

// storedCall is the location of a call's row and the record it came from.
type storedCall struct {
	callKey
	precedence
}

// precedence decides which of two records of a call is its row.
type precedence struct {
	startedAt  int64
	from       sourcePosition
	legOutcome *int64 // of one of several records of a call: how the leg went; nil: it replaces those before it
}

// compare orders by precedence, the row last: two of several records of a call by how the leg went, then by
// their start, and other records by their position.
func (p *precedence) compare(o *precedence) int {
	if p.legOutcome != nil && o.legOutcome != nil {
		return cmp.Or(cmp.Compare(*p.legOutcome, *o.legOutcome), cmp.Compare(p.startedAt, o.startedAt),
			p.from.compare(o.from))
	}
	return p.from.compare(o.from)
}

// batch holds the entries of one transaction.
type batch struct {
	entries []entry
	// fence, if not nil, is the first step of the transaction: it moves the partition's
	// position, or returns consume.ErrMoved.
	fence func(context.Context, *sqldb.BulkTx) error
	// overwrite also replaces a row of the same record.
	overwrite bool
}

// batchCounts counts a batch's records by what became of them.
type batchCounts struct{ rows, older, expired int }

// apply stores the newest record of each call as the call's row, in one transaction with the fence, and returns how
// many records became what. Records that are in the index already, or older than their call's row, change nothing:
// applying records is idempotent.
func (x *Index) apply(ctx context.Context, b batch) (batchCounts, error) {
	newest, older := newestPerCall(b.entries)
	firstKept := x.firstRetained(time.Now())
	// Before the transaction: a new partition's table lock would be held until its end.
	if err := x.createPartitions(ctx, monthsOf(newest, firstKept)); err != nil {
		return batchCounts{}, err
	}

	startedAt := time.Now()
	var result batchCounts
	err := x.applyWithRetry(ctx, func(tx *sqldb.BulkTx) error {
		if b.fence != nil {
			if err := b.fence(ctx, tx); err != nil {
				return err
			}
		}

		existing, err := x.findCalls(ctx, tx, newest)
		if err != nil {
			return err
		}

		change := planChange(newest, existing, firstKept, b.overwrite)
		result = change.batchCounts
		result.older += older

		return x.writeChange(ctx, tx, change)
	})
	if err != nil {
		x.clearKnownPartitions()
		return batchCounts{}, err
	}

	x.metrics.countBatch(result, time.Since(startedAt))
	return result, nil
}

// applyWithRetry repeats the transaction when two indexers inserted the same
// call concurrently. Each repetition means that another indexer has committed, so that
// only many indexers of the same records, which takeovers do not cause, need many.
func (x *Index) applyWithRetry(ctx context.Context, fn func(*sqldb.BulkTx) error) error {
	const maxAttempts = 20
	for attempt := 1; ; attempt++ {
		err := x.db.BulkTx(ctx, fn)
		if attempt == maxAttempts || !sqldb.IsUniqueViolation(err) {
			return err
		}
	}
}

// newestPerCall returns the entry of each call that is its row, the newest but for calls with several
// records, sorted by call, so that all indexers lock calls in the same order.
func newestPerCall(entries []entry) (newest []*entry, older int) {
	newest = make([]*entry, len(entries))
	for i := range entries {
		newest[i] = &entries[i]
	}
	slices.SortFunc(newest, func(a, b *entry) int {
		return cmp.Or(a.key().compare(b.key()), b.precedence.compare(&a.precedence))
	})
	newest = slices.CompactFunc(newest, func(a, b *entry) bool { return a.key() == b.key() })
	return newest, len(entries) - len(newest)
}

func monthsOf(entries []*entry, firstKept month) []month {
	var months []month
	for _, e := range entries {
		m := monthOf(e.row.Timestamp)
		if m >= firstKept && !slices.Contains(months, m) {
			months = append(months, m)
		}
	}
	return months
}

// change lists the rows that a batch deletes and creates.
type change struct {
	batchCounts
	deletes []storedCall
	creates []*entry // sorted by call
}

func planChange(newest []*entry, existing map[callKey]storedCall, firstKept month, overwrite bool) change {
	var c change
	for _, e := range newest {
		old, exists := existing[e.key()]
		if exists {
			order := e.precedence.compare(&old.precedence)
			if order < 0 || order == 0 && !overwrite {
				c.older++
				continue
			}
			c.deletes = append(c.deletes, old)
		}

		// The older row goes all the same: the newest record says that the call is past its retention.
		if monthOf(e.row.Timestamp) < firstKept {
			c.expired++
			continue
		}

		c.creates = append(c.creates, e)
		c.rows++
	}

	return c
}

func (x *Index) writeChange(ctx context.Context, tx *sqldb.BulkTx, c change) error {
	if err := x.deleteCalls(ctx, tx, c.deletes); err != nil {
		return sqldb.Wrap(err, "removing older rows")
	}

	// The calls first: their primary key orders two indexers that insert the same call.
	var values []any
	err := tx.CopyIn(ctx, callsTable, callColumns, len(c.creates), func(i int) []any {
		values = callValues(values, c.creates[i])
		return values
	})
	if err != nil {
		return sqldb.Wrap(err, "storing calls")
	}

	// Rows with close times are then stored close together.
	slices.SortStableFunc(c.creates, func(a, b *entry) int { return cmp.Compare(a.row.Timestamp, b.row.Timestamp) })
	err = tx.CopyIn(ctx, rowsTable, storedColumns, len(c.creates), func(i int) []any {
		values = rowValues(values, c.creates[i])
		return values
	})

	return sqldb.Wrap(err, "storing rows")
}
