package cdrindex

import (
	"context"

	"trunkline/event"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// maxPersonCalls bounds a page of CallsOf.
const maxPersonCalls = 500

// CallsOf returns records of all legs of calls of an account in which a number took part, as caller
// or callee, in any of its fields of numbers: those of up to maxPersonCalls legs with it, oldest
// first, behind after (start in Unix seconds, call id), and the place of the last of these. There are no further
// ones if it returns no rows. A leg of a call is returned again with each page that has the number in another leg
// of it.
func (x *Index) CallsOf(ctx context.Context, account, number string,
	after report.Cursor) (rows []event.CDR, last report.Cursor, err error) {
	var q report.Conditions
	q.Add("account_id = ?", account)
	q.Add("(started, call_id) > (?, ?)", after.Time, after.ID)
	q.Add(`("from" = ? OR "to" = ? OR caller_id_number = ? OR callee_id_number = ?)`, number, number, number, number)
	q.OrderAndLimit("started, call_id", maxPersonCalls)
	found, err := x.queryRows(ctx, &q, nil)
	if err != nil || len(found) == 0 {
		return nil, after, err
	}

	var interactions []string
	for i := range found {
		interactions = append(interactions, found[i].InteractionID)
	}

	var legs report.Conditions
	legs.Add("account_id = ?", account)
	legs.AddIn("interaction_id", interactions)
	legs.OrderAndLimit("started, call_id", 100*maxPersonCalls)

	rows, err = x.queryRows(ctx, &legs, nil)
	end := &found[len(found)-1]
	return rows, report.Cursor{Time: end.Timestamp, ID: end.CallID}, err
}

// EraseCalls deletes the rows of calls. A reindex brings back those that the topic still has.
func (x *Index) EraseCalls(ctx context.Context, rows []event.CDR) error {
	err := x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		calls := make([]storedCall, len(rows))
		for i := range rows {
			calls[i] = storedCall{callKey{rows[i].AccountID, rows[i].CallID}, precedence{startedAt: rows[i].Timestamp}}
		}
		return x.deleteCalls(ctx, tx, calls)
	})
	return sqldb.Wrap(err, "erasing call records")
}
