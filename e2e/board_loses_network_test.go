package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// jsFloorSummary is an expression of a summary of the board's floor: agents, then calls.
const jsFloorSummary = `[
	...[...document.querySelectorAll("#agents li[data-tone]")].map((li) => "agent " + li.querySelector(".name").title),
	...[...document.querySelectorAll("#calls tr[data-tone]")].map((tr) => ["call", tr.querySelector("td.id").title, tr.dataset.tone, tr.querySelector(".queue").title, tr.querySelector(".agent").title].join(" ")),
].sort()`

// floorSnapshot returns the same summary of the server's snapshot.
func (n *node) floorSnapshot(t *testing.T, token string) []string {
	t.Helper()
	var s struct {
		Agents []struct {
			ID string `json:"agent_id"`
		}
		Calls []struct {
			ID    string `json:"call_id"`
			Queue string `json:"queue_id"`
			Agent string `json:"agent_id"`
			State string
		}
	}
	a := n.mustCall(t, http.MethodGet, "/ws/v1/cc_events/snapshot", bearer(token), "")
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK {
		t.Fatalf("snapshot: %s %v", a, err)
	}

	list := []string{}
	for _, one := range s.Agents {
		list = append(list, "agent "+one.ID)
	}

	for _, one := range s.Calls {
		list = append(list, strings.Join([]string{"call", one.ID, one.State, one.Queue, one.Agent}, " "))
	}

	slices.Sort(list)
	return list
}

// TestBoard follows a supervisor: log in, watch, call, look up, and lose the network in several
// ways, without losing an event.
func TestBoard(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	stopDemo := n.playDemo(t, c.key, 2)
	token := n.login(t, wsPaths, user("alice").types(boardEventTypes...))
	reference := keepSubscribed(t, subscription{paths: wsPaths, token: token, cursor: true, since: "earliest"}, n)
	reference.awaitCount(t, 25) // so that agents and calls exist before the board is opened

	b := n.newBoard(t)
	b.view(t, "#events")
	b.recordShownIDs(t)
	b.login(t, "alice")
	b.awaitTrue(t, "events", "document.querySelector('#feed li')")
	b.testDetails(t)

	for _, loss := range []struct {
		name string
		lose func()
	}{
		{"the cable is stalled", func() {
			b.cable.setState(stalled)
			b.awaitDisconnected(t)
			reference.awaitCount(t, len(reference.events())+20) // during the disconnect
			b.cable.setState(passing)
		}},
		{"connections are cut, twice", func() {
			for range 2 {
				b.cable.setState(resetting)
				b.awaitDisconnected(t)
				b.cable.setState(passing)
				b.awaitLive(t)
			}
		}},
		{"the browser is offline", func() {
			b.setOffline(t, true)
			b.cable.setState(resetting) // Chromium's emulation does not affect open WebSockets
			b.awaitDisconnected(t)
			reference.awaitCount(t, len(reference.events())+2)
			b.cable.setState(passing)
			b.setOffline(t, false)
		}},
		{"the server restarts", func() {
			n.signal(t, syscall.SIGTERM)
			if code, ok := n.awaitExit(patience); !ok || code != 0 {
				t.Fatalf("exit %d, %v", code, ok)
			}
			b.awaitDisconnected(t)
			n.start(t)
		}},
		{"WebSockets do not pass any more", func() {
			// Chromium's own blocking does not affect WebSockets.
			b.mustEval(t, `globalThis.RealSocket = WebSocket; globalThis.WebSocket = class {
				constructor() { setTimeout(() => this.onclose?.({ code: 1006 })); }
				close() {}
			}`, nil)
			b.cable.setState(resetting)
			b.awaitDisconnected(t)
			b.cable.setState(passing)
			b.awaitTrue(t, "an event stream", "document.getElementById('transport').textContent === 'event stream'")
			b.mustEval(t, "void (globalThis.WebSocket = RealSocket)", nil)
			b.cable.setState(resetting)
			b.awaitDisconnected(t)
			b.cable.setState(passing)
			b.awaitTrue(t, "a WebSocket again", "document.getElementById('transport').textContent === 'WebSocket'")
		}},
	} {
		t.Logf("%s, after %s", loss.name, reference.lastID())
		loss.lose()
		b.awaitLive(t)
		t.Logf("%s: back at %s", loss.name, reference.lastID())
	}

	b.testNothingLost(t, n, reference, stopDemo, token)
	b.testCall(t)
	b.checkPage(t)
}

func (b *board) setOffline(t *testing.T, yes bool) {
	t.Helper()
	b.call(t, "Network.emulateNetworkConditions",
		map[string]any{"offline": yes, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}, nil)
}

// lastID returns the id of the last event.
func (s *subscriber) lastID() string {
	all := s.events()
	return all[len(all)-1].ID
}

// testNothingLost stops the traffic and compares the board's events with those of the reference
// subscriber, and the board's state with the server's.
func (b *board) testNothingLost(t *testing.T, n *node, reference *subscriber, stopDemo func(), token string) {
	t.Helper()
	stopDemo()

	var last, before string
	eventually(t, "board and reference to be at the same event", func() error {
		last = reference.lastID()
		var shown string // the feed is drawn with the next frame, later than the last id
		b.mustEval(t, "document.getElementById('feed').firstElementChild?.dataset.id ?? ''", &shown)

		if shown != last || shown != before {
			before = shown
			return fmt.Errorf("the board shows %s as the newest event, the reference is at %s", shown, last)
		}

		return nil
	})

	b.mu.Lock()
	_, from, _ := strings.Cut(b.sockets[0], "since=") // the snapshot's cursor
	b.mu.Unlock()

	from = from[:len("cc_evt_")+19]
	// The reference subscriber receives the events between a cursor and a disconnect again.
	want := slices.DeleteFunc(ids(reference.events()), func(id string) bool { return id <= from })
	slices.Sort(want)
	want = slices.Compact(want)
	got := b.shownIDs(t)
	if !slices.Equal(got, want) {
		t.Errorf("the board showed %d events, the reference got %d after %s:\nnot shown %v\nnot to be shown, or twice %v",
			len(got), len(want), from, subtract(want, got), subtract(got, want))
	}

	var count string
	b.mustEval(t, "document.getElementById('feed-count').textContent", &count)
	if !strings.HasPrefix(count, strconv.Itoa(len(want))+" ") {
		t.Errorf("the board counts %q of %d events", count, len(want))
	}

	b.view(t, "#floor")
	var floor []string
	eventually(t, "the board to show the server's floor", func() error { // it asks for a snapshot a second after events
		b.mustEval(t, jsFloorSummary, &floor)
		if now := n.floorSnapshot(t, token); !slices.Equal(floor, now) || len(now) == 0 {
			return fmt.Errorf("the board's floor\n%s\nthe server's\n%s", strings.Join(floor, "\n"),
				strings.Join(now, "\n"))
		}
		return nil
	})

	t.Logf("%d events, each once; %d on the floor", len(want), len(floor))
}

// subtract returns the elements of a that occur less often in b.
func subtract(a, b []string) (left []string) {
	counts := map[string]int{}
	for _, one := range b {
		counts[one]++
	}

	for _, one := range a {
		counts[one]--
		if counts[one] < 0 {
			left = append(left, one)
		}
	}

	return left
}

// testDetails opens an event with the keyboard.
func (b *board) testDetails(t *testing.T) {
	t.Helper()
	b.mustEval(t, "document.getElementById('feed').parentElement.focus()", nil)
	b.press(t, "ArrowDown")
	b.press(t, "Enter")
	b.awaitTrue(t, "the event's JSON", `(() => {
		const open = document.querySelector('#feed .entry[aria-expanded="true"]');
		const pre = open && document.getElementById(open.getAttribute("aria-controls")).querySelector("pre");
		return pre && JSON.parse(pre.textContent).id === open.parentElement.dataset.id;
	})()`)
	b.press(t, "Enter")
	b.awaitTrue(t, "it to be closed", `!document.querySelector('#feed .entry[aria-expanded="true"]')`)
}

// testCall calls an extension with the keyboard, follows the call to its end and looks up its
// record.
func (b *board) testCall(t *testing.T) {
	t.Helper()
	b.view(t, "#phone")
	b.awaitTrue(t, "the phone", jsFieldHasFocus("number"))
	b.typeText(t, "1002")
	b.press(t, "Enter")
	b.awaitTrue(t, "the call to be connected and to end", "document.querySelector('.steps [data-state=\"ended\"]')")
	var states []string
	b.mustEval(t, `[...document.querySelectorAll(".steps li")].map((li) => li.dataset.state)`, &states)

	if want := []string{"accepted", "ringing_user", "user_answered", "dialling", "bridged",
		"ended"}; !slices.Equal(states, want) {
		t.Errorf("the call went %v", states)
	}

	b.pressNamed(t, "Its record")
	b.awaitTrue(t, "its record",
		`document.getElementById("call")?.innerText.includes("NORMAL_CLEARING") && document.getElementById("call").innerText.includes("1002")`)

	b.view(t, "#phone?number=9903") // rings for 3 s
	b.awaitTrue(t, "the number", "document.querySelector('#dial input')?.value === '9903'")
	b.pressNamed(t, "Call")
	b.awaitTrue(t, "the second call to ring",
		`document.querySelector("#phone li[aria-label='Call to 9903'] [data-state='dialling']")`)
	b.pressNamed(t, "Hang up")
	b.awaitTrue(t, "it to be cancelled",
		`document.querySelector("#phone li[aria-label='Call to 9903'] [data-state='ended']")?.textContent.includes("ORIGINATOR_CANCEL")`)
}
