package figures

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// batch is what records of one partition of cc.stats say of the tables.
type batch struct {
	tables     *Store
	partition  int
	entries    []entry
	statements []storeStatement
}

// Reset implements consume.Batch.
func (b *batch) Reset() {
	clear(b.entries)
	clear(b.statements)
	b.entries, b.statements = b.entries[:0], b.statements[:0]
}

// Add implements consume.Batch.
func (b *batch) Add(r *kafka.Record, _ int64) {
	e, isRow, err := decodeRow(r)
	o, isStored := storeStatement{}, false
	if !isRow {
		o, isStored, err = decodeAlertOrCall(r)
	}

	switch {
	case err != nil:
		b.tables.metrics.invalid.Inc()
		b.tables.log.Error("invalid record in the topic of figures", "topic", event.TopicStats, "partition", r.Partition,
			"offset", r.Offset, "error", err)
	case isRow:
		b.entries = append(b.entries, e)
	case isStored:
		b.statements = append(b.statements, o)
	}
}

// Store implements consume.Batch. It omits rows that retention would delete.
func (b *batch) Store(ctx context.Context, move func(context.Context, *sqldb.BulkTx) error) error {
	s := b.tables
	var kinds [len(tables)][]entry
	kept := s.firstKept()

	for _, e := range b.entries {
		// A row that retention has deleted may come again with a rebuild.
		if e.Start >= kept {
			kinds[e.Kind] = append(kinds[e.Kind], e)
		}
	}

	for i := range kinds {
		kinds[i] = newestOfEach(kinds[i])
	}

	err := s.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		// First: where another indexer has the partition, nothing is written.
		if err := move(ctx, tx); err != nil {
			return err
		}
		if err := forgetDays(ctx, tx, kinds[Queues]); err != nil {
			return err
		}

		for _, o := range b.statements {
			_, err := tx.ExecContext(ctx, o.statement, o.args...)
			if err != nil {
				return sqldb.Wrap(err, "storing alerts and abandoned calls")
			}
		}

		for kind, entries := range kinds {
			if err := s.write(ctx, tx, &tables[kind], b.partition, entries); err != nil {
				return sqldb.Wrap(err, "storing figures")
			}
		}

		return nil
	})
	if err == nil {
		s.metrics.stored.Add(float64(len(kinds[Queues]) + len(kinds[Agents])))
	}

	return err
}

// newestOfEach returns for each row the entry with the last event, sorted by row, so
// that all writers lock rows in the same order.
func newestOfEach(entries []entry) []entry {
	compare := func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID),
			cmp.Compare(a.Seconds, b.Seconds))
	}
	slices.SortStableFunc(entries,
		func(a, b entry) int { return cmp.Or(compare(a, b), cmp.Compare(b.eventID, a.eventID)) })
	return slices.CompactFunc(entries, func(a, b entry) bool { return compare(a, b) == 0 })
}

// write stores entries of one table. PostgreSQL gets one statement with arrays; SQLite
// runs in the process, so one statement per entry is cheap.
func (s *Store) write(ctx context.Context, tx *sqldb.BulkTx, t *table, partition int, entries []entry) error {
	if len(entries) == 0 {
		return nil
	}

	columns := t.columns()
	if s.db.Postgres() {
		arrays := make([]any, len(columns))
		places := make([]string, len(columns))
		for i, column := range columns {
			places[i] = fmt.Sprintf("$%d::%s[]", i+1, t.typeOf(column))
		}

		var values []any
		for n := range entries {
			values = entries[n].values(values[:0], partition)
			for i, value := range values {
				arrays[i] = appendValue(arrays[i], value)
			}
		}

		_, err := tx.ExecContext(ctx, t.insert(columns, "SELECT * FROM unnest("+strings.Join(places, ", ")+")"),
			arrays...)
		return err
	}

	places := make([]string, len(columns))
	for i := range columns {
		places[i] = fmt.Sprintf("$%d", i+1)
	}

	insert, err := tx.PrepareContext(ctx, t.insert(columns, "VALUES ("+strings.Join(places, ", ")+")"))
	if err != nil {
		return err
	}
	defer insert.Close()

	var values []any
	for n := range entries {
		values = entries[n].values(values[:0], partition)
		_, err := insert.ExecContext(ctx, values...)
		if err != nil {
			return err
		}
	}

	return nil
}

// appendValue appends a text or a number to an array of its type; a nil array is
// empty.
func appendValue(array, value any) any {
	if text, ok := value.(string); ok {
		texts, _ := array.([]string)
		return append(texts, text)
	}
	numbers, _ := array.([]int64)
	return append(numbers, value.(int64))
}

// typeOf returns the type of a column in PostgreSQL.
func (t *table) typeOf(column string) string {
	switch column {
	case "account_id", t.id, reasonsColumn:
		return "text"
	}
	return "bigint"
}

// insert returns the statement that inserts rows, or replaces rows with the same key
// unless those have a later event.
func (t *table) insert(columns []string, source string) string {
	var sets []string
	for _, column := range columns[5:] { // after the key
		sets = append(sets, column+" = excluded."+column)
	}
	return "INSERT INTO " + t.name + " (" + strings.Join(columns, ", ") + ") " + source +
		" ON CONFLICT (account_id, interval_start, " + t.id + ", interval_seconds, topic_partition) DO UPDATE SET " +
		strings.Join(sets, ", ") + " WHERE " + t.name + ".event_id <= excluded.event_id"
}
