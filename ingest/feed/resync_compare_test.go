package feed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
)

// comparedState is the state of an account that events have made.
type comparedState struct {
	*state.Partition
	last         event.ID          // of the last event
	onDifference func(event.Facts) // called after each difference was folded; nil: nothing
}

// happen folds events with the facts.
func (s *comparedState) happen(all ...event.Facts) {
	for _, f := range all {
		s.last = event.NextID(max(s.last, event.NextID(0, 1_795_169_700_000, 0)), 0, 0)
		s.CompleteAndFold(&state.Event{ID: s.last, Account: "acme",
			Timestamp: cmp.Or(f.TimestampMS, s.last.Milli()) / 1000,
			Source:    "feed:f", Facts: f})
	}
}

// resynced applies what a comparison with a snapshot finds, and returns the names of it.
func (s *comparedState) resynced(t *testing.T, objects ...Object) (names []string) {
	t.Helper()
	for i := range objects {
		objects[i].Account = "acme"
	}

	snapshot := Snapshot{CompleteKinds: []state.Kind{state.Agent, state.Call}, Objects: objects}
	var found *comparisonRound
	for range 2 { // a call that is missing ends in the second round
		found = compare(snapshot, s.All(), "feed:f", found, func(string, *state.Entry) bool { return false })
		for _, d := range found.differences {
			names = append(names, string(d.facts.Name))
			var read event.Facts
			if err := json.Unmarshal(d.facts.Append(nil), &read); err != nil {
				t.Fatal(err)
			}
			if read.Reason != event.ReasonParked {
				read.Reason = event.ReasonResync
			}

			s.happen(read)
			if s.onDifference != nil {
				s.onDifference(read)
			}
		}
	}

	return names
}

// shows returns agents and calls that are live.
func (s *comparedState) shows() string {
	var lines []string
	for _, e := range s.All() {
		if !e.Live() {
			continue
		}

		queue := ""
		if e.IsLiveVisit() {
			queue = "in " + e.QueueID
		}

		with := e.AgentID
		if e.Kind == state.Agent {
			with = string(e.AfterCall)
		}

		lines = append(lines,
			strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", e.ID, e.State, e.Reason, with, queue)), " "))
	}

	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// memberReport is a membership of which the platform reports this.
func memberReport(queue string, report event.AgentReport) Member {
	return Member{Queue: queue, Report: &report}
}

// ofMembers is an agent with memberships.
func ofMembers(id string, members ...Member) Object {
	o := Object{Kind: state.Agent, ID: id, Facts: event.Facts{AgentID: id}, Members: members, Queues: []string{}}
	for _, m := range members {
		o.Queues = append(o.Queues, m.Queue)
	}
	return o
}

// legOf is a call that is a leg.
func legOf(id string, s event.State, noQueue bool, f event.Facts) Object {
	f.CallID, f.State = id, s
	return Object{Kind: state.Call, ID: id, Facts: f, Leg: true, NoQueue: noQueue}
}

func TestAResyncFindsNoOutcomeThatThePlatformDoesNotShow(t *testing.T) {
	waits := []event.Facts{
		{Name: event.NameCallCreated, CallID: "c"},
		{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "q"},
	}
	rings := append(slices.Clone(waits),
		event.Facts{Name: event.NameQueueCallOffered, CallID: "c", QueueID: "q", AgentID: "101"},
		event.Facts{Name: event.NameQueueCallOffered, CallID: "c", QueueID: "q", AgentID: "102"})

	talks := append(slices.Clone(rings),
		event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: "q", AgentID: "102"})
	idle := event.AgentReport{Device: event.DeviceIdle}
	for name, c := range map[string]struct {
		before    []event.Facts
		objects   []Object
		want      string // live afterwards
		forbidden []event.Name
	}{
		"the caller has left by a key while an agent's phone rang": {rings,
			[]Object{legOf("c", event.Talking, true, event.Facts{})},
			"101 available, 102 available, c talking",
			[]event.Name{event.NameQueueCallAnswered, event.NameQueueCallAbandoned}},
		"another agent has answered": {rings,
			[]Object{legOf("c", event.Talking, false, event.Facts{QueueID: "q", AgentID: "101"})},
			"101 talking, 102 available, c talking 101 in q", []event.Name{event.NameQueueCallAbandoned}},
		"it does not show who has answered": {rings,
			[]Object{legOf("c", event.Talking, false, event.Facts{QueueID: "q"})},
			"101 ringing, 102 ringing, c ringing 102 in q", []event.Name{event.NameQueueCallAnswered}},
		"the caller was sent on by the agent": {talks,
			[]Object{legOf("c", event.Talking, true, event.Facts{}), ofMembers("102", memberReport("q", idle))},
			"101 available, 102 available, c talking",
			[]event.Name{event.NameQueueCallAnswered, event.NameQueueCallAbandoned}},
		"the caller waits again": {rings, []Object{legOf("c", event.Waiting, false, event.Facts{QueueID: "q"})},
			"101 available, 102 available, c waiting in q",
			[]event.Name{event.NameAgentNoAnswer, event.NameQueueCallEntered}},
		"the caller is gone": {waits, nil, "",
			[]event.Name{event.NameQueueCallAnswered, event.NameQueueCallAbandoned}},
		"nothing has changed": {talks,
			[]Object{legOf("c", event.Talking, false, event.Facts{QueueID: "q", AgentID: "102"})},
			"101 available, 102 talking, c talking 102 in q", event.Names()},
		"the caller was parked": {waits,
			[]Object{legOf("c", event.Held, true, event.Facts{Reason: event.ReasonParked})},
			"c held parked", []event.Name{event.NameQueueCallAnswered}},
		"a call that was parked": {waits[:1],
			[]Object{legOf("c", event.Held, true, event.Facts{Reason: event.ReasonParked})}, "c held parked", nil},
		"a leg that entered a queue, where a phone rings": {[]event.Facts{waits[0],
			{Name: event.NameCallAnswered, CallID: "c"}},
			[]Object{legOf("c", event.Ringing, false, event.Facts{QueueID: "q"})}, "c ringing in q",
			[]event.Name{event.NameQueueCallAnswered}},
		"a leg that rings, and entered a queue": {waits[:1],
			[]Object{legOf("c", event.Ringing, false, event.Facts{QueueID: "q"})}, "c ringing in q", nil},
		"a leg that entered a queue, and waits": {waits[:1],
			[]Object{legOf("c", event.Waiting, false, event.Facts{QueueID: "q"})}, "c waiting in q", nil},
		"the caller waits in another queue": {waits,
			[]Object{legOf("c", event.Waiting, false, event.Facts{QueueID: "r"})}, "c waiting in r",
			[]event.Name{event.NameQueueCallAbandoned}},
		"the caller rings in another queue": {talks,
			[]Object{legOf("c", event.Ringing, false, event.Facts{QueueID: "r"})},
			"101 available, 102 available, c ringing in r", nil},
		"a new call in a queue, which goes on": {nil,
			[]Object{legOf("c", event.Waiting, false, event.Facts{QueueID: "q"})}, "c waiting in q", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &comparedState{Partition: state.NewPartition()}
			s.happen(c.before...)
			agents := c.objects

			for _, e := range s.All() { // the agents are as they are known, unless the case says so
				if e.Kind == state.Agent && !slices.ContainsFunc(agents, func(o Object) bool { return o.ID == e.ID }) {
					agents = append(agents, Object{Kind: state.Agent, ID: e.ID, Facts: event.Facts{AgentID: e.ID}})
				}
			}

			names := s.resynced(t, agents...)
			if got := s.shows(); got != c.want {
				t.Errorf("after %v:\n got %s\nwant %s", names, got, c.want)
			}

			for _, name := range c.forbidden {
				if slices.Contains(names, string(name)) {
					t.Errorf("it said %s", name)
				}
			}

			if again := s.resynced(t, agents...); len(again) > 0 {
				t.Errorf("a second comparison finds %v", again)
			}
		})
	}
}

func TestAResyncTakesWhatThePlatformSaysOfAgents(t *testing.T) {
	const at = 1_795_169_000_000
	paused := func(queue, why string, since int64) Member {
		m := memberReport(queue,
			event.AgentReport{Device: event.DeviceIdle, Paused: true, Reason: why, PausedSince: since})
		m.SinceMS = since * 1000
		return m
	}

	wrapsUp := event.Facts{Name: event.NameAgentState, AgentID: "x", QueueID: "q",
		Agent: &event.AgentReport{Device: event.DeviceIdle, WrapUpUntilMS: 4_000_000_000_000}}
	idle := func(queue string) Member { return memberReport(queue, event.AgentReport{Device: event.DeviceIdle}) }

	stateReport := func(s event.State, report *event.AgentReport) Object {
		return Object{Kind: state.Agent, ID: "x",
			Facts: event.Facts{AgentID: "x", AgentName: "Ann", State: s, TimestampMS: at, Agent: report}}
	}

	joined := event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "q",
		Agent: &event.AgentReport{Device: event.DeviceIdle}}

	offered := event.Facts{Name: event.NameQueueCallOffered, CallID: "c", QueueID: "q", AgentID: "x"}
	answered := event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: "q", AgentID: "x"}
	for name, c := range map[string]struct {
		before []event.Facts
		object Object
		want   string
	}{
		"a pause in every queue": {nil,
			ofMembers("x", paused("q", "lunch", at/1000), paused("r", "lunch", at/1000)), "x break lunch"},
		"a pause in one of two": {nil, ofMembers("x", paused("q", "lunch", at/1000), idle("r")),
			"x available"},
		"a wrap-up that is over": {[]event.Facts{joined, wrapsUp}, ofMembers("x", idle("q")), "x available"},
		"another reason": {[]event.Facts{joined}, ofMembers("x", paused("q", "tea", at/1000)),
			"x break tea"},
		"a phone that does not disturb": {[]event.Facts{joined},
			ofMembers("x", memberReport("q", event.AgentReport{Device: event.DeviceBusy})), "x other busy"},
		"a break as one state, with reason": {nil,
			stateReport(event.Break,
				&event.AgentReport{Presence: event.Break, Activity: event.ActivityNone, Reason: "lunch"}),
			"x break lunch"},
		"logged out": {[]event.Facts{{Name: event.NameAgentLogin, AgentID: "x"}},
			stateReport(event.Offline, nil), ""},
		"on demand and not ready": {nil,
			stateReport("", &event.AgentReport{Presence: event.Available, Activity: event.ActivityNotReady}),
			"x other not_ready"},
		"logged out, and finishes a call": {[]event.Facts{{Name: event.NameAgentLogin, AgentID: "x"}, offered, answered,
			{Name: event.NameQueueCallEnded, CallID: "c", AgentID: "x"}},
			stateReport(event.Offline, nil), ""},
		"a break during a call that it missed": {[]event.Facts{joined, offered, answered},
			ofMembers("x", memberReport("q",
				event.AgentReport{Device: event.DeviceInUse, InCall: true, Paused: true, Reason: "lunch"})),
			"c talking x in q, x talking break"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &comparedState{Partition: state.NewPartition()}
			s.happen(c.before...)
			objects := []Object{c.object}

			if strings.HasPrefix(c.want, "c ") {
				objects = append(objects, legOf("c", event.Talking, false, event.Facts{QueueID: "q", AgentID: "x"}))
			}

			names := s.resynced(t, objects...)
			if got := s.shows(); got != c.want {
				t.Errorf("after %v: %q, want %q", names, got, c.want)
			}
			if again := s.resynced(t, objects...); len(again) > 0 {
				t.Errorf("a second comparison finds %v", again)
			}
		})
	}

	s := &comparedState{Partition: state.NewPartition()}
	s.happen(joined)
	renamed := ofMembers("x", idle("q"))
	renamed.Facts.AgentName = "Ann"
	s.resynced(t, renamed)

	if got := s.Find(state.Key{Account: "acme", Kind: state.Agent, ID: "x"}).AgentName; got != "Ann" {
		t.Errorf("the new name is %q", got)
	}
}

func TestAResyncTakesTheNameOfAMemberThatWasRenamedMeanwhile(t *testing.T) {
	idle := event.AgentReport{Device: event.DeviceIdle}
	s := &comparedState{Partition: state.NewPartition()}
	s.happen(event.Facts{Name: event.NameAgentQueueJoin, AgentID: "PJSIP/1011", AgentName: "Old Name", QueueID: "sales",
		State: event.Available, Agent: &idle})
	renamed := ofMembers("PJSIP/1011", memberReport("sales", idle))
	renamed.Facts.AgentName = "New Name"

	found := s.resynced(t, renamed)
	if e := s.Find(state.Key{Account: "acme", Kind: state.Agent, ID: "PJSIP/1011"}); e.AgentName != "New Name" {
		t.Errorf("the agent is %s after %v", e.Append(nil), found)
	}
	if found := s.resynced(t, renamed); len(found) > 0 {
		t.Errorf("compared again: %v", found)
	}
}

func TestAResyncTakesTheTimeOfABreakThatWasSetAgainMeanwhile(t *testing.T) {
	const began, again = 1_795_169_600, 1_795_169_660
	pause := func(at int64) event.AgentReport {
		return event.AgentReport{Device: event.DeviceIdle, Paused: true, PausedSince: at, Reason: "paper"}
	}
	firstPause := pause(began)

	onBreak := func(at int64) event.Facts {
		return event.Facts{Name: event.NameAgentState, AgentID: "a", State: event.Break, TimestampMS: at * 1000,
			Agent: &event.AgentReport{Presence: event.Break, Activity: event.ActivityNone}}
	}

	member := ofMembers("a", memberReport("q", pause(again)))
	member.Members[0].SinceMS = again * 1000
	for name, c := range map[string]struct {
		before event.Facts
		now    Object
	}{
		"a pause of a member": {event.Facts{Name: event.NameAgentBreakStart, AgentID: "a", QueueID: "q",
			TimestampMS: began * 1000, Agent: &firstPause}, member},
		"the status of an agent": {onBreak(began), Object{Kind: state.Agent, ID: "a", Facts: onBreak(again)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &comparedState{Partition: state.NewPartition()}
			s.happen(c.before)
			found := s.resynced(t, c.now)

			if e := s.Find(state.Key{Account: "acme", Kind: state.Agent, ID: "a"}); e.State != event.Break ||
				e.Since != again {
				t.Errorf("the agent is %s after %v", e.Append(nil), found)
			}
			if found := s.resynced(t, c.now); len(found) > 0 {
				t.Errorf("compared again: %v", found)
			}
		})
	}
}

// What a platform says of the present can be older than the state that ended meanwhile: the last call
// of a queue, before a break or a call of the agent's own.
func TestAResyncLeavesTheStateBeforeItsTime(t *testing.T) {
	const began = 1_795_169_800_000
	idle := event.AgentReport{Device: event.DeviceIdle}
	for name, c := range map[string]struct {
		before  event.AgentReport // since began
		sinceMS int64
		want    int64 // Unix seconds since which the agent is available; 0: since the comparison
	}{
		"an own call ended": {event.AgentReport{Device: event.DeviceInUse}, began - 60_000, 0},
		"a break ended": {event.AgentReport{Device: event.DeviceIdle, Paused: true,
			PausedSince: began / 1000}, began - 60_000, 0},
		"a wrap-up ended at a time that is known": {event.AgentReport{Device: event.DeviceIdle,
			WrapUpUntilMS: began + 5000}, began + 5000, began/1000 + 5},
		"a wrap-up ended, and the switch has begun": {event.AgentReport{Device: event.DeviceIdle,
			WrapUpUntilMS: began + 5000}, 0, began/1000 + 5},
		"a call ended in the second of its answer": {event.AgentReport{Device: event.DeviceInUse}, began, began / 1000},
	} {
		t.Run(name, func(t *testing.T) {
			s := &comparedState{Partition: state.NewPartition()}
			s.happen(event.Facts{Name: event.NameAgentQueueJoin, AgentID: "101", QueueID: "q", Agent: &idle,
				TimestampMS: began - 60_000},
				event.Facts{Name: event.NameAgentState, AgentID: "101", QueueID: "q", Agent: &c.before,
					TimestampMS: began})

			// Another queue of the agent has nothing to tell.
			snapshot := Snapshot{Objects: []Object{ofMembers("101", memberReport("p", idle),
				Member{Queue: "q", SinceMS: c.sinceMS, Report: &idle})}}
			snapshot.Objects[0].Account = "acme"
			found := compare(snapshot, s.All(), "feed:f", nil, func(string, *state.Entry) bool { return false })
			if len(found.differences) != 2 {
				t.Errorf("found %+v", found.differences)
			}

			for _, d := range found.differences {
				if d.facts.TimestampMS/1000 != c.want {
					t.Errorf("%s: since %d, want %d", d.facts.QueueID, d.facts.TimestampMS/1000, c.want)
				}
			}
		})
	}

	s := &comparedState{Partition: state.NewPartition()}
	s.happen(event.Facts{Name: event.NameAgentBreakStart, AgentID: "101", State: event.Break, TimestampMS: began})
	available := Object{Account: "acme", Kind: state.Agent, ID: "101",
		Facts: event.Facts{AgentID: "101", State: event.Available, TimestampMS: began - 60_000}}
	found := compare(Snapshot{Objects: []Object{available}}, s.All(), "feed:f", nil,
		func(string, *state.Entry) bool { return false })
	if len(found.differences) != 1 || found.differences[0].facts.TimestampMS != 0 {
		t.Errorf("of an agent with one state: %+v", found.differences)
	}
}

// A call that ended while nobody looked lasted until the platform says that its agent's last call ended,
// and the wrap-up after it has its time.
func TestACallThatEndedMeanwhileEndsAtThePlatformsTime(t *testing.T) {
	const answered = 1_795_169_700_000
	idle := event.AgentReport{Device: event.DeviceIdle}

	member := ofMembers("101", memberReport("p", idle), Member{Queue: "q", SinceMS: answered + 25_000, Report: &idle})
	oneState := Object{Kind: state.Agent, ID: "101",
		Facts: event.Facts{AgentID: "101", State: event.Available, TimestampMS: answered + 20_000}}
	for name, c := range map[string]struct {
		agent      Object
		lastCallMS int64
		want       []string
	}{
		"a member of queues": {member, answered + 20_000,
			[]string{"queue.call_ended 20000 available", "agent.state 20000 wrap_up", "agent.state 25000 available"}},
		"one state for the agent":      {oneState, answered + 20_000, []string{"queue.call_ended 20000 available"}},
		"its last call was another":    {oneState, answered - 60_000, []string{"queue.call_ended 0 available"}},
		"the platform does not report": {oneState, 0, []string{"queue.call_ended 0 available"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &comparedState{Partition: state.NewPartition()}
			s.happen(event.Facts{Name: event.NameAgentQueueJoin, AgentID: "101", QueueID: "q",
				Agent: c.agent.Facts.Agent, TimestampMS: answered - 60_000},
				event.Facts{Name: event.NameAgentQueueJoin, AgentID: "101", QueueID: "p",
					TimestampMS: answered - 60_000},
				event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "q", TimestampMS: answered - 5000},
				event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: "q", AgentID: "101",
					TimestampMS: answered})
			c.agent.LastCallMS = c.lastCallMS

			var reported []string
			key := state.Key{Account: "acme", Kind: state.Agent, ID: "101"}
			s.onDifference = func(f event.Facts) {
				at := int64(0)
				if f.TimestampMS != 0 {
					at = f.TimestampMS - answered
				}
				reported = append(reported, fmt.Sprintf("%s %d %s", f.Name, at, s.Find(key).State))
			}

			s.resynced(t, c.agent)
			for _, want := range c.want {
				if !slices.Contains(reported, want) {
					t.Errorf("%q is missing of %q", want, reported)
				}
			}

			if again := s.resynced(t, c.agent); len(again) > 0 {
				t.Errorf("a second comparison finds %v", again)
			}
		})
	}
}
