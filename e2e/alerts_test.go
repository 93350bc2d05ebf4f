package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestAnAlertBeginsByTheTimeAlone posts a caller who has waited almost as long as the default rule
// allows. No other event comes: the alert must begin when the time has come, be on the channel within
// 2 s, and end with the caller's answer, once each.
func TestAnAlertBeginsByTheTimeAlone(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	s := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice").types("AGENT_CUSTOM_EVENT"))})

	post := func(step, agent string, at time.Time) {
		t.Helper()
		body := fmt.Sprintf(
			`{"type":"svc_cc_queue_on_call_event","timestamp":%d,"data":{"event":%q,"queue_id":"support","call_id":"c1","agent_id":%q}}`,
			at.Unix(), step, agent)
		if a := n.post(t, c.key, "generic", typeJSON, body); a.status != http.StatusAccepted {
			t.Fatalf("ingest answers %s", a)
		}
	}

	type alert struct {
		Event   string
		ID      string `json:"alert_id"`
		Name    string
		Queue   string  `json:"queue_id"`
		Started float64 `json:"started_at"`
		State   string
	}

	alerts := func() (of []alert) {
		for _, e := range s.events() {
			var a alert
			if err := json.Unmarshal(e.Data, &a); err == nil && a.Name == "Longest wait" {
				of = append(of, a)
			}
		}

		return of
	}

	listed := func(query string) (data []alert) {
		t.Helper()
		var page struct{ Data []alert }
		a := n.mustCall(t, http.MethodGet, "/api/v2/alerts"+query, n.dialler(t, "alice").header, "")
		if err := json.Unmarshal(a.body, &page); err != nil || a.status != http.StatusOK {
			t.Fatalf("%s %v", a, err)
		}

		return page.Data
	}

	entered := time.Now().Add(-118 * time.Second).Truncate(time.Second)
	due := entered.Add(120 * time.Second)
	post("entered", "", entered)

	var seen time.Time
	eventually(t, "the alert", func() error {
		got := alerts()
		seen = time.Now()
		if len(got) == 0 {
			return fmt.Errorf("none of %d events", len(s.events()))
		}
		return nil
	})

	if early := due.Sub(seen); early > 0 {
		t.Errorf("the alert comes %s before its time", early)
	}

	eventually(t, "the alert in the list", func() error {
		if got := listed(""); len(got) != 1 || got[0].Queue != "support" || got[0].State != "active" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})

	post("answered", "1001", time.Now())
	eventually(t, "the end of the alert", func() error {
		if got := listed(fmt.Sprintf("?state=ended&startDate=%d&endDate=%d", due.Unix()-1, due.Unix()+60)); len(
			got) != 1 {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})

	got := alerts()
	if len(got) != 2 || got[0].Event != "alert.started" || got[1].Event != "alert.ended" || got[0].ID != got[1].ID ||
		got[0].Started*1000 < float64(due.UnixMilli()) {
		t.Errorf("events %+v", got)
	}
}

// TestAlertsOnceThroughKills kills the program between the step that begins or ends an alert and what comes
// of it, again and again: the log has each alert's begin and end once, and the list has each once.
func TestAlertsOnceThroughKills(t *testing.T) {
	t.Parallel()
	const rounds = 4
	c := embeddedCluster(t)
	n := c.nodes[0]

	post := func(queue, step, agent string, at time.Time) {
		t.Helper()
		body := fmt.Sprintf(
			`[{"type":"svc_cc_queue_on_call_event","timestamp":%d,"data":{"event":%q,"queue_id":%q,"call_id":"call-%s","agent_id":%q}}]`,
			at.Unix(), step, queue, queue, agent)
		c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, body, 1)
	}

	type alert struct {
		Event, Name, State string
		ID                 string `json:"alert_id"`
		Queue              string `json:"queue_id"`
	}
	began := time.Now()

	// listLongestWait returns the alerts of the list that are of the rule Longest wait.
	listLongestWait := func(query string) (of []alert) {
		t.Helper()
		var page struct{ Data []alert }
		a := n.mustCall(t, http.MethodGet, "/api/v2/alerts"+query, n.dialler(t, "alice").header, "")
		if err := json.Unmarshal(a.body, &page); err != nil || a.status != http.StatusOK {
			t.Fatalf("%s %v", a, err)
		}

		for _, one := range page.Data {
			if one.Name == "Longest wait" {
				of = append(of, one)
			}
		}

		return of
	}

	for round := range rounds {
		queue := fmt.Sprint("queue-", round)
		post(queue, "entered", "", time.Now().Add(-200*time.Second)) // the default rule allows 120 s
		n.kill(t)
		n.start(t)

		eventually(t, "the alert of "+queue, func() error {
			if got := listLongestWait(""); len(got) != 1 || got[0].Queue != queue || got[0].State != "active" {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})

		post(queue, "answered", "1001", time.Now())
		n.kill(t)
		n.start(t)

		eventually(t, "its end", func() error {
			if got := listLongestWait(""); len(got) != 0 {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}

	listed := listLongestWait(
		fmt.Sprintf("?state=ended&startDate=%d&endDate=%d", began.Add(-10*time.Minute).Unix(), time.Now().Unix()))
	if len(listed) != rounds {
		t.Errorf("the list has %+v", listed)
	}

	s := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice").types("AGENT_CUSTOM_EVENT")),
			since: "earliest"})
	steps := map[string][]string{}
	eventually(t, "every alert on the channel", func() error {
		clear(steps)
		ended := 0
		for _, e := range s.events() {
			var one alert
			if err := json.Unmarshal(e.Data, &one); err != nil || one.Name != "Longest wait" {
				continue
			}

			steps[one.Queue] = append(steps[one.Queue], one.Event)
			if one.Event == "alert.ended" {
				ended++
			}
		}

		if ended < rounds {
			return fmt.Errorf("%v", steps)
		}

		return nil
	})

	for queue, got := range steps {
		if !slices.Equal(got, []string{"alert.started", "alert.ended"}) {
			t.Errorf("%s: %v", queue, got)
		}
	}
}
