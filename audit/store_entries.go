package audit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"trunkline/internal/sqldb"
)

const (
	maxQueuedEntries    = 10_000 // reported entries in the queue
	maxEntriesPerInsert = 200    // entries in one statement
	storeTimeout        = 10 * time.Second
)

// entryGroup has the queued entries of one call of Record or Report.
type entryGroup struct {
	entries  []Entry
	reported bool // no caller waits
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
	err := sqldb.Wrap(l.storing.Do(ctx, entryGroup{entries: entries}), "writing the audit log")
	l.logEntries(ctx, err == nil, entries)
	return err
}

// Report stores entries without waiting. It is for events that happen even if they cannot
// be recorded, such as refusals and ends.
func (l *Log) Report(ctx context.Context, entries ...Entry) {
	entries = cleanAll(entries)
	l.logEntries(ctx, true, entries)
	n := int64(len(entries))
	if l.queuedReports.Add(n) > maxQueuedEntries {
		l.queuedReports.Add(-n)
		l.metrics.failures.Add(float64(n))
		return
	}
	l.storing.Add(entryGroup{entries, true})
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

	for some := range slices.Chunk(entries, maxEntriesPerInsert) {
		if err := insertPending(ctx, tx, cleanAll(some)); err != nil {
			l.metrics.failures.Add(float64(len(some)))
			return err
		}
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

// storeGroups stores the entries of a round.
func (l *Log) storeGroups(groups []entryGroup) error {
	var entries []Entry
	for _, g := range groups {
		entries = append(entries, g.entries...)
		if g.reported {
			l.queuedReports.Add(-int64(len(g.entries)))
		}
	}

	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()

	err := l.db.WithoutTx(ctx, func(db sqldb.Runner) error {
		for rest := range slices.Chunk(entries, maxEntriesPerInsert) { // several only if one caller has many entries
			if err := insertPending(ctx, db, rest); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.metrics.failures.Add(float64(len(entries)))
		l.log.Warn("writing the audit log failed", "entries", len(entries), "error", err)
	}

	l.wakeChain()
	return err
}

func (l *Log) wakeChain() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// insertPending stores up to maxEntriesPerInsert entries as pending, in one statement.
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
