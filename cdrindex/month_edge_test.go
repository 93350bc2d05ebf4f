package cdrindex

import (
	"testing"
)

func TestACallAtAMonthsEdgeIsFoundFromBothSides(t *testing.T) {
	edge := call("acme", "edge", december-30)
	edge.EndedTime, edge.OriginationCallID = december+30, "oc"
	long := call("acme", "long", november-40*24*3600)
	long.EndedTime = december + 20
	within := call("acme", "within", december+100)
	within.EndedTime = december + 7200
	touching := call("acme", "touching", december-60)
	touching.EndedTime = december

	before := call("acme", "before", december-90)
	before.EndedTime = december - 1
	onBoth(t, func(t *testing.T, x *Index) {
		storeRows(t, x, edge, long, within, touching, before, call("acme", "plain", december-20),
			call("zeta", "edge", december-30))
		for name, c := range map[string]struct {
			start, end int64
			want       []string
		}{
			"the later month":   {december, december + 31*24*3600, []string{"within", "edge", "touching", "long"}},
			"the earlier month": {november, december - 1, []string{"plain", "edge", "touching", "before"}},
			"both, each once": {november, december + 31*24*3600,
				[]string{"within", "plain", "edge", "touching", "before", "long"}},
			"the end's second":    {december + 30, december + 30, []string{"edge"}},
			"behind its end":      {december + 31, december + 40, nil},
			"the start's second":  {december - 30, december - 30, []string{"edge"}},
			"in the middle of it": {december - 10, december + 10, []string{"touching"}},
			"within one month":    {december + 150, december + 8000, nil},
		} {
			f := inRange("acme", c.start, c.end)
			for _, f.PageSize = range []int{50, 1, 2} {
				checkIDs(t, listCallIDs(t, x, f), append([]string{}, c.want...)...)
			}

			f.CallID = "edge"
			var want []string
			for _, id := range c.want {
				if id == "edge" {
					want = append(want, id)
				}
			}

			checkIDs(t, listCallIDs(t, x, f), append([]string{}, want...)...)
			row, err := x.Find(t.Context(), "acme", c.start, c.end, "oc", nil)
			if (err == nil) != (len(want) == 1) || err == nil && row.CallID != "edge" {
				t.Errorf("%s: found %q, %v", name, row.CallID, err)
			}
		}

		// A later version ends in the month it began.
		shorter := edge
		shorter.EndedTime = december - 5
		applyRecords(t, x, false, record(shorter, 0, 100))
		checkIDs(t, listCallIDs(t, x, inRange("acme", december+30, december+30)))
	})
}
