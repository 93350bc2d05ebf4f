package cdrindex

import (
	"fmt"
	"slices"
	"testing"

	"trunkline/event"
	"trunkline/internal/report"
)

// Each page ends behind the last leg with the number, however much later another leg of its calls began.
func TestAllCallsOfANumberAreFoundPageByPage(t *testing.T) {
	const number, legs = "+4930123456", maxPersonCalls + 2
	onBoth(t, func(t *testing.T, x *Index) {
		var rows []event.CDR
		for i := range legs {
			row := call("acme", fmt.Sprintf("leg%04d", i), 1_700_000_000+int64(i/3)) // some at the same second
			row.InteractionID, row.From = row.CallID, number
			rows = append(rows, row)
		}
		other := call("acme", "other", 1_700_000_000+legs)
		other.InteractionID, other.From, other.To = rows[0].CallID, "1001", "1002"
		storeRows(t, x, append(rows, other)...)

		found := make(map[string]bool)
		for at := (report.Cursor{}); ; {
			page, next, err := x.CallsOf(t.Context(), "acme", number, at)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}

			for _, row := range page {
				found[row.CallID] = true
			}
			at = next
		}

		missing := slices.DeleteFunc(append(rows, other), func(row event.CDR) bool { return found[row.CallID] })
		if len(missing) > 0 {
			t.Errorf("%d legs are missing, the first is %s", len(missing), missing[0].CallID)
		}
	})
}
