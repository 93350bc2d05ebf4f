package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// jsWatchShifts begins to add up the shifts of the layout, with what moved.
const jsWatchShifts = `(() => {
	globalThis.shifts?.observer.disconnect();
	const shifts = globalThis.shifts = { sum: 0, moved: [] };
	const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(",");
	shifts.add = (entries) => {
		for (const { value, sources } of entries) {
			shifts.sum += value;
			for (const { node, previousRect, currentRect } of sources) {
				const of = node?.nodeType === 1 ? node : node?.parentElement;
				shifts.moved.push(value.toFixed(4) + " " + of?.tagName + "." + of?.className + " in " + of?.parentElement?.className + " " +
					JSON.stringify(node?.textContent?.slice(0, 30)) + " " + place(previousRect) + " to " + place(currentRect));
			}
		}
	};
	shifts.observer = new PerformanceObserver((list) => shifts.add(list.getEntries()));
	shifts.observer.observe({ type: "layout-shift" });
})()`

// jsReadShifts is an expression of the sum and of what moved, once all has been drawn.
const jsReadShifts = `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(drawn)))).then(() => {
	shifts.add(shifts.observer.takeRecords());
	return { sum: shifts.sum, moved: shifts.moved };
})`

// checkShifts checks that the layout has not shifted since jsWatchShifts, with what moved.
func (b *board) checkShifts(t *testing.T, what string) {
	t.Helper()
	var got struct {
		Sum   float64
		Moved []string
	}
	b.mustEval(t, jsReadShifts, &got)
	t.Logf("%s: the layout shifts by %.4f", what, got.Sum)

	if got.Sum >= 0.01 {
		t.Errorf("%s: the layout shifts by %.4f:\n%s", what, got.Sum,
			strings.Join(got.Moved[:min(len(got.Moved), 40)], "\n"))
	}
}

// scene is a contact center whose events change everything that a page shows of it.
type scene struct {
	c     *cluster
	calls int // so far, for their ids
}

const sceneQueues, sceneAgents = 8, 24

// agentEvent returns an event of an agent, such as AGENT_LOGIN.
func (s *scene) agentEvent(number int, eventType string) string {
	return fmt.Sprintf(`{"type":%q,"data":{"agent_id":"%d","agent_name":"Agent Number-%02d","queue_id":"Support-%d"}}`,
		eventType, 3000+number, number, number%sceneQueues)
}

// callEvent returns an event of a call in a queue: a step such as "entered" at a time, with an agent (-1: none).
func (s *scene) callEvent(step string, queue, call, agent int, at time.Time) string {
	agentID := ""
	if agent >= 0 {
		agentID = fmt.Sprint(3000 + agent)
	}
	return fmt.Sprintf(
		`{"type":"svc_cc_queue_on_call_event","timestamp":%d,"data":{"event":%q,"queue_id":"Support-%d","call_id":"call-%d","agent_id":%q,"caller":"+4930%d"}}`,
		at.Unix(), step, queue, call, agentID, 100000+call)
}

func (s *scene) post(t *testing.T, events ...string) {
	t.Helper()
	s.c.ingestNode.postAccepted(t, s.c.key, "generic", typeJSON, "["+strings.Join(events, ",")+"]", len(events))
}

// changeEverything has callers wait for so long that an alert begins, agents ring, talk, pause, leave and come, and
// callers hang up. After each step it waits until the page has what the step changed.
func (s *scene) changeEverything(t *testing.T, b *board) {
	t.Helper()
	// awaitState waits until condition, an expression of agents, calls and queues, holds for the page's state.
	awaitState := func(what, condition string) {
		t.Helper()
		eventually(t, what, func() error {
			var otherwise string // what the state is
			b.mustEval(t, `import("/board/state.js").then(({ floor: { value: { agents, calls, queues } } }) => `+condition+
				` ? "" : JSON.stringify([agents.map((a) => a.id + " " + a.state), queues.map((q) => q.id + " " + q.waiting)]))`,
				&otherwise)

			if otherwise != "" {
				return fmt.Errorf("the page has %s", otherwise)
			}

			return nil
		})

		b.mustEval(t, jsReadShifts, nil)
	}

	awaitWaiting := func(n int) {
		t.Helper()
		awaitState("callers who wait", fmt.Sprintf("queues.reduce((sum, q) => sum + q.waiting, 0) === %d", n))
	}

	first, now := s.calls, time.Now()
	s.calls += 24
	var entered, enteredLater, offered, answered, ended []string // events

	for i := range 24 {
		queue, at := i%sceneQueues, now.Add(-time.Duration(590+i)*time.Second) // soon ten minutes: one more digit
		if i >= 8 {
			queue = i % 2 // more than nine in one queue
		}

		call := s.callEvent("entered", queue, first+i, -1, at)
		if i < 8 {
			entered = append(entered, call)
		} else {
			enteredLater = append(enteredLater, call)
		}

		if i < 18 {
			offered = append(offered, s.callEvent("offered", queue, first+i, 6+i, now))
			answered = append(answered, s.callEvent("answered", queue, first+i, 6+i, now))
			ended = append(ended, s.callEvent("ended", queue, first+i, 6+i, now))
		} else {
			ended = append(ended, s.callEvent("abandoned", queue, first+i, -1, now))
		}
	}

	s.post(t, entered...)
	awaitWaiting(8)
	s.post(t, enteredLater...)
	awaitWaiting(24)
	b.awaitTrue(t, "the alert", "document.querySelector('.banner')")
	s.post(t, offered...)
	awaitState("ringing agents", "agents.filter((a) => a.state === 'ringing').length === 18")
	s.post(t, answered...)
	awaitWaiting(6)
	s.post(t, s.agentEvent(1, "AGENT_BREAK_START"), s.agentEvent(2, "AGENT_BREAK_START"),
		s.agentEvent(0, "AGENT_LOGOUT"), s.agentEvent(4, "AGENT_LOGOUT"))
	awaitState("breaks", "agents.length === 22 && agents.filter((a) => a.state === 'break').length === 2")
	s.post(t, ended...)
	awaitWaiting(0)
	s.post(t, s.agentEvent(1, "AGENT_BREAK_END"), s.agentEvent(2, "AGENT_BREAK_END"), s.agentEvent(0, "AGENT_LOGIN"),
		s.agentEvent(4, "AGENT_LOGIN"))
	awaitState("everybody", "agents.length === 24 && agents.every((a) => a.state !== 'break')")
	b.awaitTrue(t, "the end of the alert", "!document.querySelector('.banner')")
}

// TestBoardDoesNotShift looks at every page while the data of all that it shows change: nothing on it may move.
func TestBoardDoesNotShift(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	s := &scene{c: c}

	// The service level of the hour would stay low, and its alert would not end.
	var token struct {
		Access string `json:"access_token"`
	}
	login := n.mustCall(t, http.MethodPost, "/ucp/v2/login", nil,
		`{"username":"admin","password":"`+password+`","domain":"demo.local"}`)
	if err := json.Unmarshal(login.body, &token); err != nil {
		t.Fatalf("%v: %s", err, login)
	}

	header := bearer(token.Access)
	header["X-Account-ID"] = "demo"
	rules := `{"alerts":[{"name":"Longest wait","when":{"metric":"longest_wait_seconds","above":120}}]}`
	if a := n.mustCall(t, http.MethodPut, "/api/v2/config/alerts", header, rules); a.status != http.StatusOK {
		t.Fatalf("%s", a)
	}

	var events []string
	for i := range sceneAgents {
		events = append(events, s.agentEvent(i, "AGENT_LOGIN"), s.agentEvent(i, "AGENT_QUEUE_JOIN"))
	}

	s.post(t, events...)
	b := n.newBoard(t)
	b.login(t, "alice")
	b.mustEval(t, jsWatchShifts, nil)
	s.changeEverything(t, b) // so that every queue has figures

	for _, one := range []struct {
		view, ready   string // its address, and an expression that is true once it has its data
		width, height int
	}{
		{"#floor", "document.querySelectorAll('#agents .tile').length === 24", 1440, 900},
		{"#floor?state=available", "document.querySelector('#agents .tile')", 1440, 900},
		{"#floor", "document.querySelectorAll('#agents .tile').length === 24", 390, 844},
		{"#wall?rotate=600", "document.querySelectorAll('.wall-agent').length > 4", 1920, 1080},
		{"#wall?rotate=600", "document.querySelectorAll('.wall-agent').length > 1", 390, 844},
		{"#history/queues?range=today", "document.querySelectorAll('#history tbody th').length > 0", 1440, 900},
		{"#history/agents?range=today", "document.querySelector('#history tbody th')", 1440, 900},
		{"#history/abandoned?range=today", "document.querySelector('#history tbody th')", 1440, 900},
		{"#alerts", "document.querySelector('#alerts tbody th')", 1440, 900},
		{"#phone", "document.querySelector('#phone')", 1440, 900},
		{"#events", "document.querySelector('#feed li')", 1440, 900},
	} {
		t.Run(fmt.Sprintf("%s at %d", one.view, one.width), func(t *testing.T) {
			b.call(t, "Emulation.setDeviceMetricsOverride",
				map[string]any{"width": one.width, "height": one.height, "deviceScaleFactor": 1, "mobile": false}, nil)
			b.view(t, one.view)
			b.awaitTrue(t, "the page", fmt.Sprintf("innerWidth === %d && %s", one.width, one.ready))
			// The frames of the new size have been drawn: they shift everything.
			b.mustEval(t, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))", nil)
			b.mustEval(t, "globalThis.before = document.getElementById('main').innerText; "+jsWatchShifts, nil)
			s.changeEverything(t, b)

			if strings.HasPrefix(one.view, "#history/queues") { // it reads its figures again by itself
				b.awaitTrue(t, "other figures", "document.getElementById('main').innerText !== before")
			}

			b.checkShifts(t, one.view)
		})
	}

	b.checkPage(t)
}
