package audit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestPagesShowEveryEntryOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at)
		began := time.Now().Unix()
		var made []string

		for i := range 7 {
			e := n.loginEntry(fmt.Sprint("u", i%2))
			e.At = Moment{time.Unix(began, int64(i/2)*int64(time.Millisecond))} // several with the same time
			made = append(made, e.ID)
			n.recordAndChain(t, e)
		}

		other := n.loginEntry("u0")
		other.AccountID = "other"
		n.recordAndChain(t, other)
		f := Filter{AccountID: "acme", Start: began, End: began, PageSize: 2}
		var seen []string

		for {
			page, err := n.List(t.Context(), f)
			check(t, err)
			for _, e := range page.Data {
				seen = append(seen, e.ID)
			}

			f.StartKey = page.NextStartKey
			if f.StartKey == "" {
				break
			}
		}

		slices.Sort(made)
		slices.Sort(seen)
		if !slices.Equal(made, seen) {
			t.Errorf("pages show %v, want %v", seen, made)
		}

		for name, c := range map[string]struct {
			change func(*Filter)
			want   int
		}{
			"actor":        {func(f *Filter) { f.Actor = "user:u1" }, 3},
			"action":       {func(f *Filter) { f.Action = Logout }, 0},
			"both":         {func(f *Filter) { f.Actor, f.Action = "user:u0", Login }, 4},
			"later":        {func(f *Filter) { f.Start, f.End = began+1, began+9 }, 0},
			"unstorable":   {func(f *Filter) { f.Actor = "user:\xff" }, 0},
			"nobody knows": {func(f *Filter) { f.AccountID = "nobody" }, 0},
		} {
			f := Filter{AccountID: "acme", Start: began, End: began, PageSize: 100}
			c.change(&f)
			page, err := n.List(t.Context(), f)
			if err != nil || len(page.Data) != c.want {
				t.Errorf("%s: %d entries, %v; want %d", name, len(page.Data), err, c.want)
			}
		}

		f.StartKey = "bm8"
		if _, err := n.List(t.Context(), f); fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("a wrong start key: %v", err)
		}
	})
}
