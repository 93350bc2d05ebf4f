package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// Between the command and the switch's event the feed is cut, the program is killed, and killed before it has
// the switch's answer: each action has an end, the snapshot agrees with the switch, which was asked once, and a
// repeat of the request gets the first answer.
func TestActionsEndOnceThroughCutFeedsAndKills(t *testing.T) {
	t.Parallel()
	pbx := newScriptedSwitch(t)
	pbx.setAgent("Available")
	n := newNode(t, "embedded",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password,
			"TRUNKLINE_FEEDS": pbx.feedSetting(t, switchPassword, 1)})
	n.start(t)
	n.awaitFeeds(t, 1)
	header := n.dialler(t, "admin").header
	token := n.login(t, apiPaths, user("admin"))
	n.awaitAgent(t, token, "available")

	act := func(action, key string) (answer, error) {
		keyed := map[string]string{"Idempotency-Key": key, "Authorization": header["Authorization"]}
		return n.call(t.Context(), http.MethodPost, "/api/v2/agents/1002@127.0.0.20/actions", keyed,
			`{"action":"`+action+`"}`)
	}

	idOf := func(action, key string) (id string) {
		t.Helper()
		eventually(t, action+" to be taken", func() error {
			a, err := act(action, key)
			var taken struct {
				ID string `json:"action_id"`
			}
			if err != nil || a.status != http.StatusAccepted {
				return fmt.Errorf("%s %v", a, err)
			}

			err = json.Unmarshal(a.body, &taken)
			id = taken.ID
			return err
		})

		return id
	}

	restart := func() {
		n.kill(t)
		pbx.setUnanswered(false)
		n.start(t)
	}

	for i, c := range []struct {
		name, action, state string
		unanswered          bool   // the switch does the action and does not say so
		fail                func() // before the switch's event
	}{
		{"the feed is cut", "break", "break", false, func() { pbx.stop(); pbx.start(t) }},
		{"the program is killed", "ready", "available", false, restart},
		{"the program is killed before the answer", "break", "break", true, restart},
	} {
		key, id := fmt.Sprint("key-", i), ""
		if c.unanswered {
			pbx.setUnanswered(true)
			var asking sync.WaitGroup
			asking.Go(func() {
				a, err := act(c.action, key)
				if err == nil && a.status < http.StatusInternalServerError {
					t.Errorf("%s: answered %s", c.name, a)
				}
			})

			pbx.awaitCommands(t, i+1)
			c.fail()
			asking.Wait()
			id = idOf(c.action, key)
		} else {
			id = idOf(c.action, key)
			c.fail()
		}

		end := n.awaitActionEnd(t, header, id)
		if end.State != "unconfirmed" && (end.State != "confirmed" || end.EventID == "") {
			t.Errorf("%s: %+v", c.name, end)
		}

		n.awaitAgent(t, token, c.state)
		if again := idOf(c.action, key); again != id {
			t.Errorf("%s: a repeat is action %s, not %s", c.name, again, id)
		}

		pbx.awaitCommands(t, i+1)
		t.Logf("%s: %s %s", c.name, end.State, end.EventID)
	}
}

// action is an action as GET /api/v2/actions/{action_id} shows it.
type action struct {
	State   string
	EventID string `json:"event_id"`
	Message string
}

// startAction has an action done on an agent or a call, such as "calls/ID", which must be taken.
func (n *node) startAction(t testing.TB, header map[string]string, target, action string) (id string) {
	t.Helper()
	a := n.mustCall(t, http.MethodPost, "/api/v2/"+target+"/actions", header, `{"action":"`+action+`"}`)
	var taken struct {
		ID string `json:"action_id"`
	}
	if err := json.Unmarshal(a.body, &taken); err != nil || a.status != http.StatusAccepted {
		t.Fatalf("%s of %s: %s %v", action, target, a, err)
	}
	return taken.ID
}

// awaitActionEnd waits for the end of an action.
func (n *node) awaitActionEnd(t testing.TB, header map[string]string, id string) (a action) {
	t.Helper()
	eventually(t, "the end of an action", func() error {
		got := n.mustCall(t, http.MethodGet, "/api/v2/actions/"+id, header, "")
		a = action{}
		err := json.Unmarshal(got.body, &a)
		if err != nil || got.status != http.StatusOK || a.State == "accepted" {
			return fmt.Errorf("%s %v", got, err)
		}

		return nil
	})

	return a
}
