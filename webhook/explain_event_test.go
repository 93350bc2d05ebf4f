package webhook

import (
	"maps"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestExplainTellsWhatBecameOfAnEventAtEachWebhook(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		e := newEnv(t, at, fastSettings(), 1)
		before := e.topic.put(0, "shop", entered, `{}`)
		works, fails := e.startReceiver(nil), e.startReceiver(respond(500))
		delivered := e.createWebhook(Config{URL: works.url})
		paused := e.createWebhook(Config{URL: fails.url})
		filtered := e.createWebhook(Config{URL: works.url, Filters: identity.Filter{QueueIDs: []string{"service"}}})
		waits := e.createWebhook(Config{URL: works.url, Filters: identity.Filter{AccountIDs: []string{"shop"}}})
		names := map[string]string{delivered.ID: "delivered", paused.ID: "paused", filtered.ID: "filtered",
			waits.ID: "waits"}
		_, err := e.db.ExecContext(t.Context(), `UPDATE webhooks SET created_at = $1`, before.Milli()+1)
		must(t, err)

		explain := func(id event.ID, offset int64, root string) map[string]EventOutcome {
			found := map[string]EventOutcome{}
			all, err := e.service.Explain(t.Context(), Question{EventID: id, Offset: offset, Root: root,
				Message: identity.Message{AccountID: "shop", Type: event.QueueCall, Format: "generic",
					Name: event.NameQueueCallEntered, QueueID: "sales"}}, e.directory.Tree())
			must(t, err)

			for _, one := range all {
				found[names[one.ID]] = one.Outcome
				if mismatch := one.FilteredBy; (mismatch != nil) != (one.Outcome == OutcomeFiltered) ||
					mismatch != nil && mismatch.Field != "queue_ids" {
					t.Errorf("%s: %+v", one.ID, mismatch)
				}
			}

			return found
		}

		after := e.topic.put(0, "shop", entered, `{}`)
		pending := map[string]EventOutcome{"delivered": OutcomePending, "paused": OutcomePending,
			"filtered": OutcomeFiltered, "waits": OutcomePending}
		if got := explain(after, 1, "root"); !maps.Equal(got, pending) {
			t.Errorf("before anything is delivered: %v", got)
		}

		_, stop := e.deliver()
		e.awaitStatus(paused.ID, StatusPaused)
		want := map[string]EventOutcome{"delivered": OutcomeDelivered, "paused": OutcomePaused,
			"filtered": OutcomeFiltered, "waits": OutcomeDelivered}
		var got map[string]EventOutcome
		waitFor(t, "the checkpoint", func() bool { got = explain(after, 1, "root"); return maps.Equal(got, want) })
		later := map[string]EventOutcome{"delivered": OutcomeCreatedLater, "paused": OutcomeCreatedLater,
			"filtered": OutcomeFiltered, "waits": OutcomeCreatedLater}
		if got := explain(before, 0, "root"); !maps.Equal(got, later) {
			t.Errorf("an event from before: %v", got)
		}

		for _, root := range []string{"shop", "stranger"} {
			if got := explain(after, 1, root); len(got) != 0 {
				t.Errorf("%s is told of root's webhooks: %v", root, got)
			}
		}

		stop()
		must(t, storeFailure(t.Context(), e.db, waits.ID, 0, 2, "status 503", time.Now(), time.Now().Add(time.Hour)))
		next := e.topic.put(0, "shop", entered, `{}`)
		if got := explain(next, 2, "root"); got["waits"] != OutcomeFailing || got["delivered"] != OutcomePending {
			t.Errorf("after a failure: %v", got)
		}
	})
}
