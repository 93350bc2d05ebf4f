package aiprovider

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/internal/sqldb"
)

// The rules are the queues of the providers that listen, of all accounts, and follow each change.
func TestRulesAreTheQueuesOfListeners(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		with := func(more string) string {
			return strings.Replace(whole, `"extensions":true`, `"extensions":true,`+more, 1)
		}
		one := createProvider(t, s, "acme", with(`"mode":"listen","queues":["sales","support"]`))
		other := createProvider(t, s, "demo", with(`"mode":"listen","queues":["pool"]`))
		createProvider(t, s, "demo", with(`"mode":"listen","queues":[]`))
		createProvider(t, s, "demo", with(`"mode":"listen"`))
		createProvider(t, s, "demo", whole)
		want := []QueueRule{{one.ID, "acme", []string{"sales", "support"}}, {other.ID, "demo", []string{"pool"}}}
		slices.SortFunc(want, func(a, b QueueRule) int { return strings.Compare(a.ProviderID, b.ProviderID) })

		if rules, err := s.ListRules(ctx); err != nil || !reflect.DeepEqual(rules, want) {
			t.Errorf("rules %v, %v, want %v", rules, err, want)
		}
		if found, err := s.Find(ctx, "acme", one.ID); err != nil || !slices.Equal(found.Queues, one.Queues) {
			t.Errorf("found %q, %v", found.Queues, err)
		}

		if _, err := s.Update(ctx, "acme", one.ID, members(t, whole)); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "demo", other.ID); err != nil {
			t.Fatal(err)
		}
		if rules, err := s.ListRules(ctx); err != nil || len(rules) != 0 {
			t.Errorf("rules of nobody: %v, %v", rules, err)
		}
	})
}
