package figures

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// same checks that the stored rows of an account are the last ones of cc.stats,
// byte for byte.
func (s *Store) same(t testing.TB, account string, want map[string]string) {
	t.Helper()
	got := slices.Sorted(
		slices.Values(append(s.listRows(t, wholeDay(Queues, account)), s.listRows(t, wholeDay(Agents, account))...)))
	if expected := slices.Sorted(maps.Values(want)); !slices.Equal(got, expected) {
		t.Fatalf("%d rows, want %d; the first ones:\n%s\n%s", len(got), len(expected), first(got), first(expected))
	}
}

func first(rows []string) string {
	if len(rows) == 0 {
		return "none"
	}
	return rows[0]
}

func TestStoredRowsAreThoseOfTheTopicByteForByte(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		all := records(3, 20, workday("acme", 3, 600, 9*time.Hour))
		s.storeRecords(t, 3, all[:len(all)/2])
		s.storeRecords(t, 3, all[len(all)/3:]) // a part comes twice
		s.same(t, "acme", lastRows(all))
		s.storeRecords(t, 3, all[:len(all)/2]) // older values come late
		s.same(t, "acme", lastRows(all))
		s.same(t, "other", nil)
	})
}
