package cdrindex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Find returns the leg to the destination of the account's call with this origination
// call id, in a range and visible as in Filter. Before that leg is indexed it returns the loopback
// leg with the id.
func (x *Index) Find(ctx context.Context, account string, start, end int64, originationCallID string,
	visible *report.Visible) (row event.CDR, err error) {
	defer x.metrics.observeQuery(kindFind, time.Now(), &err)

	findLeg := func(first, last, endedBy int64) ([]event.CDR, error) {
		var q report.Conditions
		q.Add("account_id = ?", account)
		q.Add("origination_call_id = ? AND lookup_rank IS NOT NULL", originationCallID)
		q.Add("started BETWEEN ? AND ?", first, last)
		q.AddVisible(visible, "queue_id", "agent_id")

		if endedBy != 0 {
			q.Add("ended_later BETWEEN ? AND ?", start, endedBy)
		}

		q.OrderAndLimit("lookup_rank, started, call_id", 1)
		return x.queryRows(ctx, &q, nil)
	}

	found, err := findLeg(start, end, 0)
	// Rows that began in the range come first, as in a list.
	if err == nil && len(found) == 0 {
		firstStart, ok, firstErr := x.findFirstEndedLater(ctx, account, start, end)
		err = firstErr
		if ok {
			found, err = findLeg(firstStart, start-1, end)
		}
	}
	if err != nil {
		return event.CDR{}, err
	}

	if len(found) == 0 {
		return event.CDR{}, fault.NotFound("No call with this origination_call_id in this range")
	}

	return found[0], nil
}

// FindCall returns the row of the account's leg with the call id, or if that is "", of the leg
// that Find returns for the origination call id, whenever it was. Of a leg with several records it is
// the first one of those that talked. ok is false if there is none.
func (x *Index) FindCall(ctx context.Context,
	account, callID, originationCallID string) (row event.CDR, ok bool, err error) {
	var q report.Conditions
	q.Add("account_id = ?", account)
	if callID == "" {
		q.Add("origination_call_id = ? AND lookup_rank IS NOT NULL", originationCallID)
		q.OrderAndLimit("lookup_rank, started, call_id", 1)
	} else {
		calls := []string{callID}
		first, known, err := x.findStart(ctx, account, callID)
		last := first
		// Of a leg with several records each part has a call id of its own.
		if err == nil && !known {
			calls, first, last, err = x.findParts(ctx, account, callID)
		}
		if err != nil || len(calls) == 0 {
			return event.CDR{}, false, err
		}

		q.Add("started BETWEEN ? AND ?", first, last)
		q.AddIn("call_id", calls)
		q.OrderAndLimit("started, call_id", maxParts)
	}

	found, err := x.queryRows(ctx, &q, nil)
	if err != nil || len(found) == 0 {
		return event.CDR{}, false, err
	}

	byOutcome := func(a, b event.CDR) int { return cmp.Compare(legOutcome(&a), legOutcome(&b)) }
	return slices.MaxFunc(found, byOutcome), true, nil
}
