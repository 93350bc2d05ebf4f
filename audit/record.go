package audit

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"trunkline/internal/sqldb"
)

const (
	maxQueued    = 10_000 // reported entries in the queue
	maxStored    = 200    // entries in one statement
	storeTimeout = 10 * time.Second
)

// entryGroup has the queued entries of one call of Record or Report.
type entryGroup struct {
	entries []Entry
	done    chan error // capacity 1; nil if no caller waits
}

// Record stores entries and returns when they are durable. If it returns an error, the
// caller must not perform the action. Entries of many callers are stored together. Returns
// fault.KindLimited for an actor with too many entries.
func (l *Log) Record(ctx context.Context, entries ...Entry) error {
	if err := l.limitActors(entries, false); err != nil {
		return err
	}
	return l.store(ctx, entries)
}

// Act runs act and then stores the entry, of which act may set fields, also where ctx has
// ended. It is for what cannot share a transaction with its entry. An actor with too many
// entries is refused before act (fault.KindLimited): nothing is done without its entry because
// the actor did much before. Attempts that fail count, and leave no entry.
func (l *Log) Act(ctx context.Context, entry *Entry, act func() error) error {
	if err := l.limitActors([]Entry{*entry}, false); err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	return l.store(context.WithoutCancel(ctx), []Entry{*entry})
}

// store stores entries and returns when they are durable.
func (l *Log) store(ctx context.Context, entries []Entry) error {
	entries = cleanAll(entries)
	done := make(chan error, 1)
	l.enqueue(entryGroup{entries, done})
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = sqldb.Wrap(ctx.Err(), "writing the audit log")
	}
	l.logEntries(ctx, err == nil, entries)
	return err
}

// Report stores entries without waiting. It is for events that happen even if they cannot
// be recorded, such as refusals and ends.
func (l *Log) Report(ctx context.Context, entries ...Entry) {
	entries = cleanAll(entries)
	l.logEntries(ctx, true, entries)
	if !l.enqueue(entryGroup{entries: entries}) {
		l.metrics.failures.Add(float64(len(entries)))
	}
}

// ReportOnce is Report, at most once per repeatInterval for the same actor, address,
// action and target, and not above the rate of the actor. It is for events that a client can
// cause without limit.
func (l *Log) ReportOnce(ctx context.Context, e Entry) {
	if l.recentReports.add(e, l.now()) && l.limitActors([]Entry{e}, true) == nil {
		l.Report(ctx, e)
	}
}

// Tx runs fn in a transaction of begin (DB.Tx or DB.Load), which also stores the entry:
// the action with its entry, or neither. fn may set fields of the entry.
func Tx[T sqldb.Runner](ctx context.Context, l *Log, runTx func(context.Context, func(T) error) error, entry *Entry,
	fn func(T) error) error {
	err := runTx(ctx, func(tx T) error {
		if err := fn(tx); err != nil {
			return err
		}
		return l.Insert(ctx, tx, *entry)
	})
	if err == nil {
		l.AfterCommit(ctx, *entry)
	}
	return err
}

// Insert stores entries in the caller's transaction, for actions with several entries.
// After the commit the caller must call AfterCommit with them. Returns fault.KindLimited for
// an actor with too many entries.
func (l *Log) Insert(ctx context.Context, tx sqldb.Runner, entries ...Entry) error {
	if err := l.limitActors(entries, false); err != nil {
		return err
	}
	for len(entries) > 0 {
		n := min(len(entries), maxStored)
		if err := insertPending(ctx, tx, cleanAll(entries[:n])); err != nil {
			l.metrics.failures.Add(float64(n))
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// AfterCommit logs entries that Insert has stored, and wakes Run.
func (l *Log) AfterCommit(ctx context.Context, entries ...Entry) {
	l.logEntries(ctx, true, cleanAll(entries))
	l.wakeChain()
}

func cleanAll(entries []Entry) []Entry {
	cleaned := make([]Entry, len(entries))
	for i, e := range entries {
		cleaned[i] = e.cleaned()
	}
	return cleaned
}

// logEntries counts the entries and writes their log lines, except those of management
// commands, which the node that adds the entries to the chain logs.
func (l *Log) logEntries(ctx context.Context, stored bool, entries []Entry) {
	for _, e := range entries {
		l.metrics.entries.WithLabelValues(string(e.Action)).Inc()
		if !e.isCLI() {
			l.logEntry(ctx, e, stored)
		}
	}
}

func (l *Log) logEntry(ctx context.Context, e Entry, stored bool) {
	attrs := []slog.Attr{
		slog.String("id", e.ID), slog.String("at", e.At.String()), slog.String("account_id", e.AccountID),
		slog.String("actor", e.Actor), slog.String("address", e.Address), slog.String("action", string(e.Action)),
		slog.String("target", e.Target), slog.String("outcome", e.Outcome),
	}
	if !stored {
		attrs = append(attrs, slog.Bool("stored", false))
	}
	l.log.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
}

// enqueue returns false when the queue is full.
func (l *Log) enqueue(q entryGroup) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.done == nil {
		if l.queuedReports+len(q.entries) > maxQueued {
			return false
		}
		l.queuedReports += len(q.entries)
	}
	l.queue = append(l.queue, q)
	if !l.isStoring {
		l.isStoring = true
		l.storers.Go(l.storeQueued)
	}
	return true
}

// storeQueued stores queued entries until the queue is empty.
func (l *Log) storeQueued() {
	for {
		batch, entries := l.takeQueued()
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		err := l.db.WithoutTx(ctx, func(db sqldb.Runner) error {
			for rest := entries; len(rest) > 0; { // more than one statement only if one caller has many entries
				n := min(len(rest), maxStored)
				if err := insertPending(ctx, db, rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		})
		cancel()
		if err != nil {
			l.metrics.failures.Add(float64(len(entries)))
			l.log.Warn("writing the audit log failed", "entries", len(entries), "error", err)
		}
		for _, q := range batch {
			if q.done != nil {
				q.done <- err
			}
		}
		l.wakeChain()
	}
}

// takeQueued removes groups with about maxStored entries in total from the queue, and
// returns them with their entries.
func (l *Log) takeQueued() (batch []entryGroup, entries []Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 && (len(entries) == 0 || len(entries)+len(l.queue[0].entries) <= maxStored) {
		q := l.queue[0]
		l.queue = l.queue[1:]
		if q.done == nil {
			l.queuedReports -= len(q.entries)
		}
		batch, entries = append(batch, q), append(entries, q.entries...)
	}
	if len(batch) == 0 {
		l.queue, l.isStoring = nil, false
	}
	return batch, entries
}

func (l *Log) wakeChain() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// insertPending stores up to maxStored entries as pending, in one statement.
func insertPending(ctx context.Context, db sqldb.Runner, entries []Entry) error {
	const fields = 8
	query := []byte(`INSERT INTO audit_pending (id, at, account_id, actor, address, action, target, outcome) VALUES `)
	args := make([]any, 0, fields*len(entries))
	for i, e := range entries {
		if i > 0 {
			query = append(query, ", "...)
		}
		n := i * fields
		query = fmt.Appendf(query, "($%d, $%d, $%d, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5, n+6, n+7, n+8)
		args = append(args, e.ID, e.At.UnixMilli(), e.AccountID, e.Actor, e.Address, string(e.Action), e.Target,
			e.Outcome)
	}
	_, err := db.ExecContext(ctx, string(query), args...)
	return sqldb.Wrap(err, "writing the audit log")
}
