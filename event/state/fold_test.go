package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
)

const firstMilli = 1_795_169_700_000

// player applies events of account a, a second apart, to a partition.
type player struct {
	*Partition
	last event.ID
	now  int64 // Unix seconds
}

func newPlayer() *player { return &player{Partition: NewPartition(), now: firstMilli / 1000} }

// play applies an event with the facts, and returns the facts as they were completed.
func (p *player) play(f event.Facts) event.Facts {
	p.now++
	p.last = event.NextID(p.last, p.now*1000, 3)
	e := Event{ID: p.last, Account: "a", Timestamp: p.now, Facts: f}
	p.Apply(&e)
	return e.Facts
}

// shows returns the entries in short: "id state queues agent on-call since", since
// in seconds after the start.
func (p *player) shows() string {
	var lines []string
	for _, e := range p.All() {
		who := e.AgentID
		if e.Kind == Agent {
			who = e.CallID
		}

		parts := []string{e.ID, string(e.State), strings.Join(e.Queues, "+"), who,
			fmt.Sprint(e.Since - firstMilli/1000)}
		lines = append(lines, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
	}

	return strings.Join(lines, ", ")
}

func agentFacts(name event.Name, agent string, s event.State) event.Facts {
	return event.Facts{Name: name, AgentID: agent, State: s}
}

// The end of a visit to a queue is told after the begin of the next one where two threads of the switch
// tell them: captured from Asterisk 23, AgentComplete after QueueCallerJoin.
func TestTheEndOfAFormerVisitLeavesTheCallInItsQueue(t *testing.T) {
	for name, queue := range map[string]string{"another queue": "sales", "the same queue": "support"} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer()
			p.play(event.Facts{Name: event.NameCallCreated, CallID: "c"})
			p.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "support"})
			p.play(event.Facts{Name: event.NameQueueCallOffered, CallID: "c", QueueID: "support", AgentID: "1002"})
			p.play(event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: "support", AgentID: "1002"})
			p.play(event.Facts{Name: event.NameCallTransferred, CallID: "c", QueueID: "support", AgentID: "1002"})
			p.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: queue})
			p.play(event.Facts{Name: event.NameQueueCallOffered, CallID: "c", QueueID: queue, AgentID: "1005"})
			p.play(event.Facts{Name: event.NameQueueCallEnded, CallID: "c", QueueID: "support", AgentID: "1002",
				State: event.Talking, TalkMS: event.MillisOf(1000)})

			e := p.Find(Key{Account: "a", Kind: Call, ID: "c"})
			if !e.IsLiveVisit() || e.QueueID != queue || e.State != event.Ringing || e.AgentID != "1005" {
				t.Errorf("%s", p.shows())
			}

			p.play(event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: queue, AgentID: "1005"})
			p.play(event.Facts{Name: event.NameQueueCallEnded, CallID: "c", QueueID: queue, AgentID: "1005",
				State: event.Talking, TalkMS: event.MillisOf(1000)})
			e = p.Find(Key{Account: "a", Kind: Call, ID: "c"})
			if e.IsLiveVisit() || e.State != event.Talking || e.QueueID != "" {
				t.Errorf("its own end: %s", p.shows())
			}
		})
	}
}

// atWork is a status that does not tell whether the agent is on a call.
func atWork(agent string) event.Facts {
	return event.Facts{Name: event.NameAgentState, AgentID: agent, Agent: &event.AgentReport{Presence: event.Available}}
}

func callFacts(name event.Name, call, agent string) event.Facts {
	return event.Facts{Name: name, CallID: call, AgentID: agent}
}

func TestStories(t *testing.T) {
	const (
		login                 = event.NameAgentLogin
		logout                = event.NameAgentLogout
		onBreak               = event.NameAgentBreakStart
		status                = event.NameAgentState
		entered               = event.NameQueueCallEntered
		offered               = event.NameQueueCallOffered
		answered              = event.NameQueueCallAnswered
		abandoned, queueEnded = event.NameQueueCallAbandoned, event.NameQueueCallEnded
	)
	type step struct {
		facts event.Facts
		want  string
	}

	for name, steps := range map[string][]step{
		"a call that is answered": {
			{agentFacts(login, "x", ""), "x available 1"},
			{event.Facts{Name: entered, CallID: "c", QueueID: "q"}, "x available 1, c waiting 2"},
			{callFacts(offered, "c", "x"), "x ringing c 3, c ringing x 3"},
			{agentFacts(status, "x", event.Talking), "x talking c 4, c ringing x 3"},
			{callFacts(answered, "c", "x"), "x talking c 4, c talking x 5"},
			{event.Facts{Name: event.NameCallHeld, CallID: "c"}, "x talking c 4, c held x 6"},
			{event.Facts{Name: event.NameCallResumed, CallID: "c"}, "x talking c 4, c talking x 7"},
			{callFacts(queueEnded, "c", "x"), "x available 8, c ended x 8"},
			{agentFacts(status, "x", event.WrapUp), "x wrap_up 9, c ended x 8"},
			{agentFacts(status, "x", ""), "x available 10, c ended x 8"},
			{agentFacts(logout, "x", ""), "x offline 11, c ended x 8"},
		},
		"an agent seen receiving a call is never missing": {
			{agentFacts(logout, "x", ""), "x offline 1"},
			{callFacts(offered, "c", "x"), "x ringing c 2, c ringing x 2"},
			{callFacts(offered, "d", "y"), "x ringing c 2, y ringing d 3, c ringing x 2, d ringing y 3"},
		},
		"an agent that logs out or pauses in a call stays so after it": {
			{callFacts(answered, "c", "x"), "x talking c 1, c talking x 1"},
			{agentFacts(logout, "x", ""), "x talking c 1, c talking x 1"},
			{callFacts(queueEnded, "c", "x"), "x offline 3, c ended x 3"},
			{agentFacts(status, "x", ""), "x offline 3, c ended x 3"},
			{callFacts(answered, "d", "y"), "x offline 3, y talking d 5, c ended x 3, d talking y 5"},
			{agentFacts(onBreak, "y", ""), "x offline 3, y talking d 5, c ended x 3, d talking y 5"},
			{event.Facts{Name: queueEnded, CallID: "d"}, "x offline 3, y break 7, c ended x 3, d ended y 7"},
			{agentFacts(status, "y", ""), "x offline 3, y break 7, c ended x 3, d ended y 7"},
		},
		"an agent that leaves its last queue while the phone rings": {
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "q", State: event.Available},
				"x available q 1"},
			{callFacts(offered, "c", "x"), "x ringing q c 2, c ringing x 2"},
			{event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "q", State: event.Offline},
				"x ringing c 2, c ringing x 2"},
			{callFacts(answered, "c", "x"), "x talking c 4, c talking x 4"},
			{callFacts(queueEnded, "c", "x"), "x offline 5, c ended x 5"},
			{callFacts(offered, "d", "x"), "x ringing d 6, c ended x 5, d ringing x 6"},
			{callFacts(event.NameAgentNoAnswer, "d", "x"), "x offline 7, c ended x 5, d waiting 7"},
		},
		"a break that begins and ends during a call": {
			{callFacts(answered, "c", "x"), "x talking c 1, c talking x 1"},
			{atWork("x"), "x talking c 1, c talking x 1"},
			{agentFacts(onBreak, "x", ""), "x talking c 1, c talking x 1"},
			{callFacts(offered, "d", "y"), "x talking c 1, y ringing d 4, c talking x 1, d ringing y 4"},
			{atWork("x"), "x talking c 1, y ringing d 4, c talking x 1, d ringing y 4"},
			{agentFacts(status, "x", ""), "x available 6, y ringing d 4, c talking 1, d ringing y 4"},
			{atWork("x"), "x available 6, y ringing d 4, c talking 1, d ringing y 4"},
		},
		"a break that begins while the phone rings": {
			{callFacts(offered, "c", "x"), "x ringing c 1, c ringing x 1"},
			{agentFacts(onBreak, "x", ""), "x ringing c 1, c ringing x 1"},
			{callFacts(answered, "c", "x"), "x talking c 3, c talking x 3"},
			{agentFacts(status, "x", event.Talking), "x talking c 3, c talking x 3"},
			{callFacts(queueEnded, "c", "x"), "x break 5, c ended x 5"},
		},
		"a break that begins while the phone rings, and ends": {
			{callFacts(offered, "c", "x"), "x ringing c 1, c ringing x 1"},
			{agentFacts(onBreak, "x", ""), "x ringing c 1, c ringing x 1"},
			{callFacts(answered, "c", "x"), "x talking c 3, c talking x 3"},
			{atWork("x"), "x talking c 3, c talking x 3"},
			{callFacts(queueEnded, "c", "x"), "x available 5, c ended x 5"},
		},
		"a call that nobody answers": {
			{event.Facts{Name: entered, CallID: "c", QueueID: "q"}, "c waiting 1"},
			{callFacts(offered, "c", "x"), "x ringing c 2, c ringing x 2"},
			{callFacts(event.NameAgentNoAnswer, "c", "x"), "x available 3, c waiting 3"},
			{callFacts(offered, "c", "y"), "x available 3, y ringing c 4, c ringing y 4"},
			{event.Facts{Name: abandoned, CallID: "c"}, "x available 3, y available 5, c ended y 5"},
			{callFacts(offered, "c", "x"), "x available 3, y available 5, c ended y 5"}, // late
			{event.Facts{Name: entered, CallID: "c", QueueID: "r"}, "x available 3, y available 5, c waiting 7"},
		},
		"several phones ring": {
			{callFacts(offered, "c", "x"), "x ringing c 1, c ringing x 1"},
			{callFacts(offered, "c", "y"), "x ringing c 1, y ringing c 2, c ringing y 1"},
			{callFacts(answered, "c", "x"), "x talking c 3, y available 3, c talking x 3"},
			{callFacts(offered, "c", "y"), "x talking c 3, y available 3, c talking x 3"}, // late
			{callFacts(offered, "d", "x"), "x talking c 3, y available 3, c talking x 3, d ringing x 5"},
		},
		"a call that is handed on": {
			{agentFacts(login, "y", ""), "y available 1"},
			{callFacts(event.NameCallAnswered, "c", "x"), "x talking c 2, y available 1, c talking x 2"},
			{event.Facts{Name: event.NameCallTransferred, CallID: "c", AgentID: "y"},
				"x available 3, y talking c 3, c talking y 2"},
			{event.Facts{Name: event.NameCallEnded, CallID: "c", AgentID: "x", State: event.WrapUp},
				"x wrap_up 4, y talking c 3, c talking y 2"},
			{event.Facts{Name: event.NameCallTransferred, CallID: "c", Callee: "100"},
				"x wrap_up 4, y talking c 3, c talking y 2"},
			{callFacts(event.NameCallEnded, "c", "y"), "x wrap_up 4, y available 6, c ended y 6"},
			// the id is used again
			{callFacts(event.NameCallAnswered, "c", "x"), "x talking c 7, y available 6, c talking x 7"},
		},
		"channels of a caller in a queue": {
			{event.Facts{Name: event.NameCallCreated, CallID: "c"}, "c ringing 1"},
			{event.Facts{Name: event.NameCallAnswered, CallID: "c"}, "c talking 2"},
			{event.Facts{Name: entered, CallID: "c", QueueID: "q"}, "c waiting 3"},
			{event.Facts{Name: event.NameCallBridged, CallID: "c"}, "c waiting 3"}, // to the music
			{callFacts(offered, "c", "x"), "x ringing c 5, c ringing x 5"},
			{event.Facts{Name: event.NameCallAnswered, CallID: "c"}, "x ringing c 5, c ringing x 5"},
			{callFacts(answered, "c", "x"), "x talking c 7, c talking x 7"},
			{event.Facts{Name: event.NameCallEnded, CallID: "c"}, "x available 8, c ended x 8"},
			{event.Facts{Name: event.NameCallBridged, CallID: "c"}, "x available 8, c ended x 8"}, // late
			{event.Facts{Name: event.NameCallDTMF, CallID: "e"}, "x available 8, c ended x 8"},
		},
		"a word for the call under another name": {
			{event.Facts{Name: event.NameOther, CallID: "c", State: event.Waiting}, ""}, // of a call that is not known
			{callFacts(answered, "c", "x"), "x talking c 2, c talking x 2"},
			{event.Facts{Name: event.NameOther, CallID: "c", State: event.Waiting}, "x available 3, c waiting 3"},
			{event.Facts{Name: event.NameConferenceLeft, CallID: "c", State: event.Ended, AgentID: "x"},
				"x available 3, c ended x 4"},
			{event.Facts{Name: event.NameOther, CallID: "c", State: event.Waiting}, "x available 3, c ended x 4"},
		},
		"queues of an agent": {
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "q"}, "x q 1"},
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "p"}, "x p+q 1"},
			{agentFacts(login, "x", ""), "x available p+q 3"},
			{event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "q"}, "x available p 3"},
			{event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "p"}, "x available 3"},
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "y", QueueID: "p", State: event.Available},
				"x available 3, y available p 6"},
		},
		"the first queue is a login, the last one a logout": {
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "q", State: event.Available},
				"x available q 1"},
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "p", State: event.Available},
				"x available p+q 1"},
			{event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "q", State: event.Offline},
				"x available p 1"},
			{event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "q", State: event.Offline},
				"x available p 1"},
			{event.Facts{Name: event.NameAgentQueueLeave, AgentID: "x", QueueID: "p", State: event.Offline},
				"x offline 5"},
			{event.Facts{Name: event.NameAgentQueueJoin, AgentID: "x", QueueID: "p", State: event.Break},
				"x break p 6"},
		},
		"devices": {
			{event.Facts{Name: event.NameDeviceUnregistered, AgentID: "x"}, ""},
			{event.Facts{Name: event.NameDeviceRegistered, AgentID: "x"}, "x registered x 2"},
			{event.Facts{Name: event.NameDeviceUnregistered, AgentID: "x"}, "x unregistered x 3"},
		},
		"a phone that registers again from a new port": {
			{event.Facts{Name: event.NameDeviceRegistered, AgentID: "x", Contact: "sip:x@192.0.2.4:5060"},
				"x registered x 1"},
			{event.Facts{Name: event.NameDeviceRegistered, AgentID: "x", Contact: "sip:x@192.0.2.4:5062"},
				"x registered x 1"},
			{event.Facts{Name: event.NameDeviceUnregistered, AgentID: "x", Contact: "sip:x@192.0.2.4:5060"},
				"x registered x 1"},
			{event.Facts{Name: event.NameDeviceUnregistered, AgentID: "x", Contact: "sip:x@192.0.2.4:5062"},
				"x unregistered x 4"},
		},
		"what has no state, or ids too long": {
			{event.Facts{Name: event.NameOther, AgentID: "x", CallID: "c"}, ""},
			{event.Facts{Name: event.NameRecordingStored, CallID: "c"}, ""},
			{agentFacts(status, "x", ""), ""},
			{agentFacts(login, strings.Repeat("x", maxTextBytes+1), ""), ""},
			{event.Facts{Name: entered, CallID: strings.Repeat("x", maxTextBytes+1)}, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, messages := newPlayer(), newPlayer()
			for i, s := range steps {
				told := p.play(s.facts)
				if p.shows() != s.want {
					t.Fatalf("after step %d, %s:\n got %s\nwant %s", i+1, s.facts.Name, p.shows(), s.want)
				}

				messages.FoldCompleted(&Event{ID: p.last, Account: "a", Timestamp: p.now, Facts: told})
				if messages.shows() != s.want {
					t.Fatalf("after step %d, %s, the fold of the messages has %s", i+1, s.facts.Name, messages.shows())
				}
			}
		})
	}
}

func TestFactsAreCompletedFromTheStateBefore(t *testing.T) {
	p := newPlayer()
	at := func(second int64) int64 { return firstMilli/1000 + second }
	for i, c := range []struct{ said, want event.Facts }{
		{event.Facts{Name: event.NameAgentState, AgentID: "x", AgentName: "Xena", State: event.Available},
			// nothing is known: not guessed
			event.Facts{Name: event.NameAgentState, AgentID: "x", AgentName: "Xena", State: event.Available}},
		{event.Facts{Name: event.NameAgentState, AgentID: "x", State: event.Break, Reason: "lunch"},
			event.Facts{Name: event.NameAgentBreakStart, AgentID: "x", AgentName: "Xena", State: event.Break,
				Reason: "lunch", PreviousState: event.Available, PreviousSince: at(1)}},
		{event.Facts{Name: event.NameAgentState, AgentID: "x", State: event.Available},
			event.Facts{Name: event.NameAgentBreakEnd, AgentID: "x", AgentName: "Xena", State: event.Available,
				PreviousState: event.Break, PreviousSince: at(2)}},
		{event.Facts{Name: event.NameAgentState, AgentID: "x", State: event.Offline},
			event.Facts{Name: event.NameAgentLogout, AgentID: "x", AgentName: "Xena", State: event.Offline,
				PreviousState: event.Available, PreviousSince: at(3)}},
		{event.Facts{Name: event.NameAgentState, AgentID: "x", State: event.Available},
			event.Facts{Name: event.NameAgentLogin, AgentID: "x", AgentName: "Xena", State: event.Available,
				PreviousState: event.Offline, PreviousSince: at(4)}},
		{event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "q", Caller: "+49301", InteractionID: "i",
			TimestampMS: firstMilli + 6250},
			event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "q", Caller: "+49301",
				InteractionID: "i", TimestampMS: firstMilli + 6250, State: event.Waiting}},
		{event.Facts{Name: event.NameQueueCallOffered, CallID: "c", AgentID: "x"},
			event.Facts{Name: event.NameQueueCallOffered, CallID: "c", AgentID: "x", AgentName: "Xena", QueueID: "q",
				Caller: "+49301", InteractionID: "i",
				State: event.Ringing, PreviousState: event.Waiting, PreviousSince: at(6), AgentState: event.Ringing}},
		{event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", AgentID: "x", TimestampMS: firstMilli + 8500},
			event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", AgentID: "x", AgentName: "Xena", QueueID: "q",
				Caller: "+49301", InteractionID: "i", TimestampMS: firstMilli + 8500,
				State: event.Talking, PreviousState: event.Ringing, PreviousSince: at(7), WaitMS: event.MillisOf(2250),
				AgentState: event.Talking}},
		{event.Facts{Name: event.NameOther, CallID: "c"},
			event.Facts{Name: event.NameOther, CallID: "c", AgentID: "x", AgentName: "Xena", QueueID: "q",
				Caller: "+49301", InteractionID: "i"}},
		{event.Facts{Name: event.NameQueueCallEnded, CallID: "c", Reason: "NORMAL_CLEARING"},
			event.Facts{Name: event.NameQueueCallEnded, CallID: "c", AgentID: "x", AgentName: "Xena", QueueID: "q",
				Caller: "+49301", InteractionID: "i", Reason: "NORMAL_CLEARING",
				State: event.Ended, PreviousState: event.Talking, PreviousSince: at(8), TalkMS: event.MillisOf(1500),
				AgentState: event.Available}},
		{event.Facts{Name: event.NameQueueCallEnded, CallID: "c"}, // a second word for the end: no second talk
			event.Facts{Name: event.NameQueueCallEnded, CallID: "c", AgentID: "x", AgentName: "Xena", QueueID: "q",
				Caller: "+49301", InteractionID: "i",
				State: event.Ended, PreviousState: event.Ended, PreviousSince: at(10), AgentState: event.Available}},
		{event.Facts{Name: event.NameOther, AgentName: "b\xff\xfed"},
			event.Facts{Name: event.NameOther, AgentName: "b\uFFFD\uFFFDd"}},
	} {
		if got := p.play(c.said); got != c.want {
			t.Errorf("event %d:\n got %+v\nwant %+v", i+1, got, c.want)
		}
	}

	e := Event{ID: p.last, Account: "a", Timestamp: p.now,
		Facts: event.Facts{Name: event.NameAgentLogout, AgentID: "x"}}
	p.Apply(&e)

	if e.Facts.State != "" || p.Find(Key{"a", Agent, "x"}).State != event.Available {
		t.Errorf("an event that was folded before: %+v", e.Facts)
	}
}

func TestEntriesExpireInTheTimeOfIDs(t *testing.T) {
	p := newPlayer()
	for _, f := range []event.Facts{
		agentFacts(event.NameAgentLogin, "at-work", ""), agentFacts(event.NameAgentLogout, "offline", ""),
		callFacts(event.NameQueueCallEntered, "lost", ""), callFacts(event.NameQueueCallEnded, "ended", ""),
		{Name: event.NameDeviceRegistered, AgentID: "phone"}, {Name: event.NameDeviceRegistered, AgentID: "gone"},
		{Name: event.NameDeviceUnregistered, AgentID: "gone"},
	} {
		p.play(f)
	}

	for _, c := range []struct {
		after time.Duration
		want  string
	}{
		{endedAge - 10*time.Second, "at-work, offline, ended, lost, gone, phone"},
		{endedAge + time.Second, "at-work, offline, lost, phone"},
		{callAge - 10*time.Second, "at-work, offline, lost, phone"},
		{callAge + time.Second, "at-work, offline"},
		{offlineAge - 10*time.Second, "at-work, offline"},
		{offlineAge + time.Second, "at-work"},
		{agentAge + time.Second, ""},
	} {
		p.now = firstMilli/1000 + 7 + int64(c.after.Seconds()) - 1
		p.play(event.Facts{Name: event.NameOther})
		var ids []string

		for _, e := range p.All() {
			ids = append(ids, e.ID)
		}

		if got := strings.Join(ids, ", "); got != c.want {
			t.Errorf("after %v: %s, want %s", c.after, got, c.want)
		}
	}
}

func TestAnAccountsLeastRecentEntryMakesRoom(t *testing.T) {
	p := newPlayer()
	p.limits[Agent.index()] = 2
	for _, agent := range []string{"1", "2", "1", "3"} {
		p.play(agentFacts(event.NameAgentState, agent, event.Talking))
		p.play(agentFacts(event.NameAgentState, agent, ""))
	}

	p.FoldCompleted(&Event{ID: p.last + 1024, Account: "b", Timestamp: p.now,
		Facts: event.Facts{Name: event.NameAgentLogin, AgentID: "4"}})
	if got := p.shows(); got != "1 available 6, 3 available 8, 4 available 8" {
		t.Errorf("got %s", got)
	}
}

func TestAnEndedCallMakesRoomBeforeALiveOne(t *testing.T) {
	p := newPlayer()
	p.limits[Call.index()] = 2
	p.play(callFacts(event.NameCallCreated, "live", "x"))
	p.play(callFacts(event.NameCallCreated, "over", "y"))
	p.play(event.Facts{Name: event.NameCallEnded, CallID: "over"})
	p.play(callFacts(event.NameCallCreated, "next", "z"))

	var calls []string
	for _, e := range p.All() {
		if e.Kind == Call {
			calls = append(calls, e.ID)
		}
	}

	slices.Sort(calls)
	if got := strings.Join(calls, ", "); got != "live, next" {
		t.Errorf("kept %s, want the calls that are under way", got)
	}
}

func TestARepeatedRegistrationIsWrittenOnceAnHour(t *testing.T) {
	p := newPlayer()
	written := 0
	for range 3 * 60 {
		p.now += 59
		p.play(event.Facts{Name: event.NameDeviceRegistered, AgentID: "x", TimestampMS: p.now * 1000})
		p.Commit(func(Change) { written++ })
	}

	if written != 3 {
		t.Errorf("written %d times in three hours", written)
	}
}

func TestAnEntryKnowsTheSourceOfTheLastEventAboutIt(t *testing.T) {
	p := newPlayer()
	shows := func() string {
		var all []string
		for _, e := range p.All() {
			all = append(all, e.ID+" "+e.Source)
		}
		return strings.Join(all, ", ")
	}

	for _, step := range []struct {
		source string
		facts  event.Facts
		want   string
	}{
		{"feed:a", agentFacts(event.NameAgentLogin, "x", ""), "x feed:a"},
		{"feed:b", callFacts(event.NameQueueCallOffered, "c", "x"), "x feed:b, c feed:b"},
		{"feed:a", callFacts(event.NameQueueCallAnswered, "c", "y"), "x feed:a, y feed:a, c feed:a"}, // x is free
		// changes nothing else
		{"feed:b", callFacts(event.NameCallDTMF, "c", ""), "x feed:a, y feed:b, c feed:b"},
		{"origination", event.Facts{Name: event.NameCallProgress, CallID: "c", State: event.Talking},
			"x feed:a, y feed:b, c feed:b"},
		{strings.Repeat("s", maxTextBytes+1), agentFacts(event.NameAgentLogout, "x", ""), "x , y feed:b, c feed:b"},
	} {
		p.now++
		p.last = event.NextID(p.last, p.now*1000, 3)
		p.Apply(&Event{ID: p.last, Account: "a", Timestamp: p.now, Source: step.source, Facts: step.facts})
		if shows() != step.want {
			t.Errorf("after %s of %.20s: %q, want %q", step.facts.Name, step.source, shows(), step.want)
		}
	}
}

func TestAnEventFromTheFutureCountsAtTheTimeOfItsID(t *testing.T) {
	p := newPlayer()
	for _, c := range []struct{ ahead, want int64 }{ // seconds
		{-3600, -3600}, {299, 299}, {300, 300}, {301, 0}, {1e10, 0},
	} {
		p.now++
		p.last = event.NextID(p.last, p.now*1000, 3)
		at := p.now + c.ahead
		e := Event{ID: p.last, Account: "a", Timestamp: at,
			Facts: event.Facts{Name: event.NameQueueCallEntered, CallID: fmt.Sprint(c.ahead), TimestampMS: at * 1000}}
		p.Apply(&e)
		call := p.Find(Key{"a", Call, fmt.Sprint(c.ahead)})
		if got := call.Since - p.now; got != c.want {
			t.Errorf("%d s ahead: since %d s after the id, want %d", c.ahead, got, c.want)
		}
		if got := call.EnteredMS - p.now*1000; got != c.want*1000 {
			t.Errorf("%d s ahead: entered %d ms after the id, want %d", c.ahead, got, c.want*1000)
		}

		if e.Facts.TimestampMS != at*1000 {
			t.Errorf("%d s ahead: the fact timestamp_ms changed to %d", c.ahead, e.Facts.TimestampMS)
		}
	}
}

func TestABreakThatIsSetAgainBeginsAgainWhereThePlatformTellsIt(t *testing.T) {
	paused := func(reason string, since int64) event.Facts {
		return event.Facts{Name: event.NameAgentBreakStart, AgentID: "a", QueueID: "q",
			Agent: &event.AgentReport{Device: event.DeviceIdle, Paused: true, PausedSince: since, Reason: reason}}
	}

	status := event.Facts{Name: event.NameAgentBreakStart, AgentID: "a", State: event.Break,
		Agent: &event.AgentReport{Presence: event.Break}}
	word := event.Facts{Name: event.NameAgentState, AgentID: "a", State: event.Break}
	for name, c := range map[string]struct {
		first, second event.Facts
		since         int64
	}{
		"a pause with another reason": {paused("lunch", 1_795_169_700), paused("paper", 1_795_169_730), 1_795_169_730},
		"the same pause told again":   {paused("lunch", 1_795_169_700), paused("lunch", 1_795_169_700), 1_795_169_700},
		"a status":                    {status, status, 1_795_169_731},
		"a word that is repeated":     {word, word, 1_795_169_700},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPartition()
			for i, f := range []event.Facts{c.first, c.second} {
				at := int64(1_795_169_700 + 31*i)
				f.TimestampMS = at * 1000
				p.Apply(&Event{ID: event.NextID(0, at*1000, 0), Account: "acme", Timestamp: at, Facts: f})
			}

			if e := p.Find(Key{"acme", Agent, "a"}); e == nil || e.State != event.Break || e.Since != c.since {
				t.Errorf("the agent is %s, want a break since %d", e.Append(nil), c.since)
			}
		})
	}
}

// At most maxExpirePerEvent entries are deleted with one event.
func TestWhatExpiresAtOnceIsForgottenEventByEvent(t *testing.T) {
	const agents = 100
	p := newPlayer()
	for i := range agents {
		p.play(callFacts(event.NameQueueCallEntered, fmt.Sprint(i), ""))
	}

	p.Commit(func(Change) {})
	p.now += int64(callAge.Seconds()) + agents
	for left := agents; left > 0; {
		p.play(event.Facts{Name: event.NameOther})
		forgotten := 0
		p.Commit(func(Change) { forgotten++ })

		if want := min(left, maxExpirePerEvent); forgotten != want {
			t.Fatalf("%d entries were forgotten with one event, %d are left", forgotten, left)
		}

		left -= forgotten
	}

	if p.Size(Call) != 0 {
		t.Errorf("%d calls are left", p.Size(Call))
	}
}
