package sqldb

import (
	"slices"
	"testing"
)

// Lists order rows by (created_at, id), and a millisecond has many rows.
func TestIDsSortInTheOrderTheyWereMade(t *testing.T) {
	var ids []string
	for range 10_000 {
		ids = append(ids, NewID())
	}

	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 10_000 {
		t.Error("ids of one process repeat, or do not sort in the order they were made")
	}
	for _, id := range ids[:10] {
		if len(id) != 32 {
			t.Errorf("%s has not 32 digits", id)
		}
	}
}
