package cdrindex

import (
	"testing"

	"trunkline/event"
	"trunkline/internal/sqldb"
)

func TestPurgingAnAccountDeletesItsRows(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		rows := []event.CDR{call("stays", "c", november)}
		for i := range sqldb.DeletedAtOnce + 10 {
			rows = append(rows, call("gone", name("c%04d", i), november+int64(i)*1000)) // over months
		}

		storeRows(t, x, rows...)
		for _, want := range []int{2 * sqldb.DeletedAtOnce, 20, 0} {
			if n, err := x.PurgeAccount(t.Context(), "gone"); n != want || err != nil {
				t.Errorf("purged %d, %v; want %d", n, err, want)
			}
		}

		page, err := x.List(t.Context(), inRange("stays", november, november))
		if err != nil || len(page.Data) != 1 {
			t.Errorf("another account has %+v, %v", page, err)
		}
	})
}
