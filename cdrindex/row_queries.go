package cdrindex

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"trunkline/event"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// queryRows appends the query's rows, of one account, to found.
func (x *Index) queryRows(ctx context.Context, q *report.Conditions, found []event.CDR) ([]event.CDR, error) {
	rows, err := x.db.QueryContext(ctx, selectRow+q.Text(), q.Args()...)
	if err != nil {
		return nil, sqldb.Wrap(err, "reading call records")
	}
	defer rows.Close()

	first := len(found)
	s := newScanner()
	for rows.Next() {
		row, err := s.scan(rows)
		if err != nil {
			return nil, sqldb.Wrap(err, "reading call records")
		}
		found = append(found, row)
	}

	if err := rows.Err(); err != nil {
		return nil, sqldb.Wrap(err, "reading call records")
	}

	return found, x.nameRecordings(ctx, found[first:])
}

// nameRecordings sets the recordings of rows of one account. A record may name a recording that its
// platform keeps (Kazoo's Media-Recording-ID): that stands where none of its leg is stored here.
func (x *Index) nameRecordings(ctx context.Context, rows []event.CDR) error {
	if x.recordings == nil || len(rows) == 0 {
		return nil
	}

	calls := make([]string, 0, len(rows))
	for i := range rows {
		calls = append(calls, rows[i].CallID)
		leg := event.LegOfPart(rows[i].CallID)
		if leg != "" {
			calls = append(calls, leg)
		}
	}

	ids, err := x.recordings.OfCalls(ctx, rows[0].AccountID, calls)
	for i := range rows {
		rows[i].RecordingID = cmp.Or(ids[rows[i].CallID], ids[event.LegOfPart(rows[i].CallID)], rows[i].RecordingID)
	}

	return err
}

// findFirstEndedLater returns the earliest start of an account's calls that
// began before the range and ended in it, in a later month.
func (x *Index) findFirstEndedLater(ctx context.Context, account string,
	start, end int64) (firstStart int64, ok bool, err error) {
	var first sql.NullInt64
	err = x.db.QueryRowContext(ctx, `SELECT MIN(started) FROM `+callsTable+`
		WHERE account_id = $1 AND ended_later BETWEEN $2 AND $3 AND started < $2`, account, start, end).Scan(&first)
	return first.Int64, first.Valid, sqldb.Wrap(err, "looking for calls at a month's edge")
}

// findStart returns the start of the account's call, in Unix seconds; ok is false for an
// unknown call.
func (x *Index) findStart(ctx context.Context, account, call string) (start int64, ok bool, err error) {
	err = x.db.QueryRowContext(ctx, `SELECT started FROM `+callsTable+` WHERE account_id = $1 AND call_id = $2`,
		account, call).Scan(&start)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return start, err == nil, sqldb.Wrap(err, "looking up a call")
}

// maxParts bounds the records of one leg that a look-up reads.
const maxParts = 100

// findParts returns the call ids of the records of the account's leg, each of a part of it, and their
// first and last start, in Unix seconds.
func (x *Index) findParts(ctx context.Context, account, leg string) (calls []string, first, last int64, err error) {
	type part struct {
		started int64
		call    string
	}

	rows, err := x.db.QueryContext(ctx, `SELECT started, call_id FROM `+callsTable+`
		WHERE account_id = $1 AND call_id BETWEEN $2 AND $3 ORDER BY call_id LIMIT $4`,
		account, event.PartID(leg, "0"), event.PartID(leg, "a"), maxParts)
	found, err := sqldb.Collect(rows, err, "looking up the records of a leg",
		func(scan sqldb.ScanFunc) (p part, err error) {
			return p, scan(&p.started, &p.call)
		})

	for i, p := range found {
		if i == 0 {
			first = p.started
		}

		first, last = min(first, p.started), max(last, p.started)
		// A leg whose own id begins like a part's is another one.
		if event.LegOfPart(p.call) == leg {
			calls = append(calls, p.call)
		}
	}

	return calls, first, last, err
}
