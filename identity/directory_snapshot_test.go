package identity

import (
	"fmt"
	"testing"
	"time"

	"trunkline/internal/testservice/testdb"
)

func TestExpiriesBetweenTwoLooks(t *testing.T) {
	at := time.Unix(1000, 0)
	second := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	d := &snapshot{keyExpiries: []time.Time{second(1), second(3), second(3)}}

	for _, tc := range []struct {
		after, until int
		want         bool
	}{{0, 1, true}, {1, 2, false}, {0, 0, false}, {1, 3, true}, {2, 9, true}, {3, 9, false}} {
		if got := d.keyExpiredBetween(second(tc.after), second(tc.until)); got != tc.want {
			t.Errorf("after %d until %d: %v", tc.after, tc.until, got)
		}
	}
}

// BenchmarkReadDirectory reads and builds a hundred thousand accounts, wide or in deep chains.
// Goal: at most a second each.
func BenchmarkReadDirectory(b *testing.B) {
	for name, accounts := range map[string][]Account{"wide": manyAccounts(100_000, 16),
		"deep": manyAccounts(100_000, 5000)} {
		b.Run(name, func(b *testing.B) {
			s := startService(b, testdb.SQLite(b), Config{})
			s.insertAccounts(b, accounts)
			for b.Loop() {
				if err := s.Directory.reload(b.Context()); err != nil {
					b.Fatal(err)
				}
			}

			if len(s.Tree().nodesByID) != len(accounts) {
				b.Errorf("%d accounts", len(s.Tree().nodesByID))
			}
		})
	}
}

func manyAccounts(n, depth int) (accounts []Account) {
	for i := range n / depth {
		accounts = append(accounts, chain(fmt.Sprintf("c%d-", i), depth)...)
	}
	return accounts
}
