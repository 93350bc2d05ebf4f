package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/explain"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/webhook"
)

// fakeExplain remembers the question and answers with a configured response.
type fakeExplain struct {
	asked  explain.Question
	answer *explain.Explanation
	err    error
}

func (f *fakeExplain) Explain(_ context.Context, q explain.Question) (*explain.Explanation, error) {
	f.asked = q
	return f.answer, f.err
}

// newFakeExplain explains an event of which nothing is known.
func newFakeExplain() *fakeExplain {
	return &fakeExplain{answer: &explain.Explanation{Event: explain.Event{Message: json.RawMessage(`{}`)},
		Format:   explain.Format{From: explain.FormatFromUnknown},
		Account:  explain.Account{From: explain.AccountFromUnknown},
		Delivery: fanout.Report{Connections: []fanout.Connection{}, Counts: map[fanout.Outcome]int{}}}}
}

// Every value of the closed lists is in openapi.yaml: do validates each answer.
func TestExplanationsAreAsDescribed(t *testing.T) {
	e := newEnv(t)
	f := e.explain
	id := event.FirstID(time.Now(), 3)
	path := "/api/v2/events/" + id.String() + "/explain"
	h := bearer(e.loginUser("admin").AccessToken)
	e.ask(200, "GET", path, h, "", nil)

	now := time.UnixMilli(1_795_169_706_125)
	f.answer = &explain.Explanation{
		Event: explain.Event{ID: id, Position: event.Position{Partition: 3, Offset: 7},
			Message: json.RawMessage(`{"id":"x"}`)},
		Raw: explain.Raw{Position: "3:5@1", Available: true, Time: now, Key: "demo",
			Headers: map[string]string{"format": "generic"}},
		Delivery: fanout.Report{Nodes: []fanout.NodeAnswer{{Node: "a", Since: 1.5}}, Missing: []string{"b"},
			Counts:      map[fanout.Outcome]int{},
			Connections: []fanout.Connection{}}, Explained: now,
	}

	for _, from := range []explain.FactFrom{explain.FactFromRecord, explain.FactFromState, explain.FactFromUnknown} {
		f.answer.Facts = append(f.answer.Facts, explain.Fact{Name: "wait_ms", Value: json.RawMessage(`7`), From: from})
	}

	for _, field := range []string{"account_ids", "event_types", "names", "agent_ids", "queue_ids", "call_ids"} {
		f.answer.Delivery.Connections = append(f.answer.Delivery.Connections,
			fanout.Connection{ID: "c", Transport: "websocket", Outcome: fanout.OutcomeFiltered,
				FilteredBy: &identity.FilterMismatch{Field: field, Admits: []string{"x"}, Count: 2}})
	}

	for _, outcome := range fanout.Outcomes() {
		f.answer.Delivery.Counts[outcome] = 1
		f.answer.Delivery.Connections = append(f.answer.Delivery.Connections,
			fanout.Connection{ID: "c", Node: "a", AccountID: "demo", Username: "bob", Transport: "sse",
				ConnectedAt: 1.5, ResumedFrom: fanout.Earliest, Outcome: outcome, QueuedAt: 2.5, LastEventID: id,
				EndedAt: 3, Code: 4008, Reason: "too slow"})
	}

	for _, outcome := range webhook.Outcomes() {
		f.answer.Webhooks = append(f.answer.Webhooks,
			webhook.Explanation{Webhook: webhook.Webhook{ID: "w", AccountID: "demo", URL: "https://a.example",
				Failures:  3,
				LastError: "status 500", FailedAt: now, NextTryAt: now, PausedAt: now}, Outcome: outcome})
	}

	for _, format := range []explain.FormatFrom{explain.FormatFromHeader, explain.FormatFromKeys,
		explain.FormatFromNothing} {
		f.answer.Format = explain.Format{Name: "generic", From: format}
		for _, account := range []explain.AccountFrom{explain.AccountFromRecord, explain.AccountFromKey} {
			f.answer.Account = explain.Account{ID: "demo", From: account}
			var got explanationView
			e.ask(200, "GET", path+"?client=c&user=bob", h, "", &got)

			if got.Event.Position != "3:7" || got.Raw.At != 1795169706.125 || got.Complete ||
				!slices.Equal(got.Missing, []string{"b"}) ||
				got.Connections[0].FilteredBy.Count != 2 || got.Webhooks[0].NextTryAt != 1795169706.125 {
				t.Fatalf("%+v", got)
			}
		}
	}

	if f.asked != (explain.Question{ID: id, Root: "demo", Client: "c", User: "bob"}) {
		t.Errorf("asked %+v", f.asked)
	}
}

func TestWhoMayAskForAnExplanation(t *testing.T) {
	e := newEnv(t)
	f := e.explain
	path := "/api/v2/events/" + event.FirstID(time.Now(), 0).String() + "/explain"
	e.ask(401, "GET", path, nil, "", nil)
	e.ask(403, "GET", path, bearer(e.loginUser("bob").AccessToken), "", nil)
	e.ask(403, "GET", path, header{"X-API-Key": e.keyWith(identity.ScopeRead)}, "", nil)
	e.ask(403, "GET", path, bearer(e.eventsToken("admin")), "", nil)

	if f.asked != (explain.Question{}) {
		t.Errorf("a refused request asks %+v", f.asked)
	}

	e.ask(200, "GET", path, header{"X-API-Key": e.keyWith(identity.ScopeAdmin)}, "", nil)
	h := bearer(e.loginUser("admin").AccessToken)
	if w := e.ask(400, "GET", "/api/v2/events/cc_evt_1/explain", h, "", nil); !strings.Contains(w.Body.String(),
		`"field":"id"`) {
		t.Errorf("a wrong id: %s", w.Body)
	}

	for _, err := range []error{fault.NotFound("Event not found"), fault.New(fault.KindGone, "gone"),
		fault.Unavailable(nil, time.Second, "away")} {
		f.err = err
		e.ask(statuses[fault.KindOf(err)], "GET", path, h, "", nil)
	}
}
