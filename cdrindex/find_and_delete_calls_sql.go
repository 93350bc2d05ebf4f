package cdrindex

import (
	"context"
	"database/sql"
	"errors"

	"trunkline/internal/sqldb"
)

// findCalls returns the stored calls of the entries, locked until the
// transaction ends.
func (x *Index) findCalls(ctx context.Context, tx *sqldb.BulkTx, entries []*entry) (map[callKey]storedCall, error) {
	find := findCallsSQLite
	if x.db.Postgres() {
		find = findCallsPostgres
	}
	found, err := find(ctx, tx, entries)
	return found, sqldb.Wrap(err, "looking up calls")
}

// deleteCalls deletes the rows of those calls.
func (x *Index) deleteCalls(ctx context.Context, tx *sqldb.BulkTx, old []storedCall) error {
	switch {
	case len(old) == 0:
		return nil
	case x.db.Postgres():
		return deleteCallsPostgres(ctx, tx, old)
	}
	return deleteCallsSQLite(ctx, tx, old)
}

const storedCallColumns = `c.account_id, c.call_id, c.started, c.source_partition, c.source_offset, c.recorded, c.outcome`

func (p *storedCall) targets() []any {
	return []any{&p.account, &p.call, &p.startedAt, &p.from.partition, &p.from.offset, &p.from.recordTimeMS,
		&p.legOutcome}
}

// forceNestedLoops disables other plans: a batch is small compared to the tables, even if the
// statistics are from when a table was a thousand times smaller.
const forceNestedLoops = `SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off`

func findCallsPostgres(ctx context.Context, tx *sqldb.BulkTx, entries []*entry) (map[callKey]storedCall, error) {
	_, err := tx.ExecContext(ctx, forceNestedLoops)
	if err != nil {
		return nil, err
	}

	accounts, calls := make([]string, len(entries)), make([]string, len(entries))
	for i, e := range entries {
		accounts[i], calls[i] = e.row.AccountID, e.row.CallID
	}

	rows, err := tx.QueryContext(ctx,
		`SELECT `+storedCallColumns+` FROM unnest($1::text[], $2::text[]) AS k(account_id, call_id)
		JOIN `+callsTable+` c ON c.account_id = k.account_id AND c.call_id = k.call_id FOR UPDATE OF c`, accounts,
		calls)
	if err != nil {
		return nil, err
	}
	defer rows.Close()

	found := make(map[callKey]storedCall)
	for rows.Next() {
		var p storedCall
		if err := rows.Scan(p.targets()...); err != nil {
			return nil, err
		}
		found[p.callKey] = p
	}

	return found, rows.Err()
}

func deleteCallsPostgres(ctx context.Context, tx *sqldb.BulkTx, old []storedCall) error {
	accounts, calls, started := make([]string, len(old)), make([]string, len(old)), make([]int64, len(old))
	first, last := old[0].startedAt, old[0].startedAt
	for i, p := range old {
		accounts[i], calls[i], started[i] = p.account, p.call, p.startedAt
		first, last = min(first, p.startedAt), max(last, p.startedAt)
	}

	_, err := tx.ExecContext(ctx,
		`DELETE FROM `+callsTable+` c USING unnest($1::text[], $2::text[]) AS k(account_id, call_id)
		WHERE c.account_id = k.account_id AND c.call_id = k.call_id`, accounts, calls)
	if err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx, `DELETE FROM `+rowsTable+` r
		USING unnest($1::text[], $2::text[], $3::bigint[]) AS k(account_id, call_id, started)
		WHERE r.account_id = k.account_id AND r.call_id = k.call_id AND r.started = k.started
			AND r.started BETWEEN $4 AND $5`, accounts, calls, started, first, last)

	return err
}

// SQLite is in the process: a statement for each costs little.

func findCallsSQLite(ctx context.Context, tx *sqldb.BulkTx, entries []*entry) (map[callKey]storedCall, error) {
	query, err := tx.PrepareContext(ctx,
		`SELECT `+storedCallColumns+` FROM `+callsTable+` c WHERE c.account_id = $1 AND c.call_id = $2`)
	if err != nil {
		return nil, err
	}
	defer query.Close()

	found := make(map[callKey]storedCall)
	for _, e := range entries {
		var p storedCall
		err := query.QueryRowContext(ctx, e.row.AccountID, e.row.CallID).Scan(p.targets()...)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, err
		}

		found[p.callKey] = p
	}

	return found, nil
}

func deleteCallsSQLite(ctx context.Context, tx *sqldb.BulkTx, old []storedCall) error {
	for _, p := range old {
		_, err := tx.ExecContext(ctx, `DELETE FROM `+callsTable+` WHERE account_id = $1 AND call_id = $2`, p.account,
			p.call)
		if err != nil {
			return err
		}

		_, err = tx.ExecContext(ctx,
			`DELETE FROM `+rowsTable+` WHERE account_id = $1 AND call_id = $2 AND started = $3`,
			p.account, p.call, p.startedAt)
		if err != nil {
			return err
		}
	}

	return nil
}
