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
// first, from a start (Unix seconds) on.
func (x *Index) CallsOf(ctx context.Context, account, number string, start int64) ([]event.CDR, error) {
	var q report.Conditions
	q.Add("account_id = ?", account)
	// A page goes on from a start, not behind it: calls may begin in the same second.
	q.Add("started >= ?", start)
	q.Add(`("from" = ? OR "to" = ? OR caller_id_number = ? OR callee_id_number = ?)`, number, number, number, number)
	q.OrderAndLimit("started, call_id", maxPersonCalls)
	found, err := x.queryRows(ctx, &q, nil)
	if err != nil || len(found) == 0 {
		return nil, err
	}

	var interactions []string
	for i := range found {
		interactions = append(interactions, found[i].InteractionID)
	}

	var legs report.Conditions
	legs.Add("account_id = ?", account)
	legs.AddIn("interaction_id", interactions)
	legs.OrderAndLimit("started, call_id", 100*maxPersonCalls)

	return x.queryRows(ctx, &legs, nil)
}

// EraseCalls deletes the rows of calls. A reindex brings back those that the topic still has.
func (x *Index) EraseCalls(ctx context.Context, rows []event.CDR) error {
	err := x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		calls := make([]storedCall, len(rows))
		for i := range rows {
			calls[i] = storedCall{callKey{rows[i].AccountID, rows[i].CallID}, precedence{started: rows[i].Timestamp}}
		}
		return x.deleteCalls(ctx, tx, calls)
	})
	return sqldb.Wrap(err, "erasing call records")
}
