package state

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/event"
)

// The end of a visit to a queue is reported after the begin of the next one where two threads of the switch
// report them: captured from Asterisk 23, AgentComplete after QueueCallerJoin.
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

func TestTheStateAfterEachEvent(t *testing.T) {
	const (
		login                 = event.NameAgentLogin
		logout                = event.NameAgentLogout
		onBreak               = event.NameAgentBreakStart
		agentState            = event.NameAgentState
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
			{agentFacts(agentState, "x", event.Talking), "x talking c 4, c ringing x 3"},
			{callFacts(answered, "c", "x"), "x talking c 4, c talking x 5"},
			{event.Facts{Name: event.NameCallHeld, CallID: "c"}, "x talking c 4, c held x 6"},
			{event.Facts{Name: event.NameCallResumed, CallID: "c"}, "x talking c 4, c talking x 7"},
			{callFacts(queueEnded, "c", "x"), "x available 8, c ended x 8"},
			{agentFacts(agentState, "x", event.WrapUp), "x wrap_up 9, c ended x 8"},
			{agentFacts(agentState, "x", ""), "x available 10, c ended x 8"},
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
			{agentFacts(agentState, "x", ""), "x offline 3, c ended x 3"},
			{callFacts(answered, "d", "y"), "x offline 3, y talking d 5, c ended x 3, d talking y 5"},
			{agentFacts(onBreak, "y", ""), "x offline 3, y talking d 5, c ended x 3, d talking y 5"},
			{event.Facts{Name: queueEnded, CallID: "d"}, "x offline 3, y break 7, c ended x 3, d ended y 7"},
			{agentFacts(agentState, "y", ""), "x offline 3, y break 7, c ended x 3, d ended y 7"},
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
			{agentFacts(agentState, "x", ""), "x available 6, y ringing d 4, c talking 1, d ringing y 4"},
			{atWork("x"), "x available 6, y ringing d 4, c talking 1, d ringing y 4"},
		},
		"a break that begins while the phone rings": {
			{callFacts(offered, "c", "x"), "x ringing c 1, c ringing x 1"},
			{agentFacts(onBreak, "x", ""), "x ringing c 1, c ringing x 1"},
			{callFacts(answered, "c", "x"), "x talking c 3, c talking x 3"},
			{agentFacts(agentState, "x", event.Talking), "x talking c 3, c talking x 3"},
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
		"a state of the call in an event of another name": {
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
			{agentFacts(agentState, "x", ""), ""},
			{agentFacts(login, strings.Repeat("x", maxTextBytes+1), ""), ""},
			{event.Facts{Name: entered, CallID: strings.Repeat("x", maxTextBytes+1)}, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, ofMessages := newPlayer(), newPlayer() // from the facts, and from the completed facts of the messages
			for i, s := range steps {
				completed := p.play(s.facts)
				if p.shows() != s.want {
					t.Fatalf("after step %d, %s:\n got %s\nwant %s", i+1, s.facts.Name, p.shows(), s.want)
				}

				ofMessages.FoldCompleted(&Event{ID: p.last, Account: "a", Timestamp: p.now, Facts: completed})
				if ofMessages.shows() != s.want {
					t.Fatalf("after step %d, %s, the fold of the messages has %s", i+1, s.facts.Name, ofMessages.shows())
				}
			}
		})
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
		p.CompleteAndFold(&Event{ID: p.last, Account: "a", Timestamp: p.now, Source: step.source, Facts: step.facts})
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
		p.CompleteAndFold(&e)
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

func TestABreakThatIsSetAgainBeginsAgainWhereThePlatformReportsIt(t *testing.T) {
	paused := func(reason string, since int64) event.Facts {
		return event.Facts{Name: event.NameAgentBreakStart, AgentID: "a", QueueID: "q",
			Agent: &event.AgentReport{Device: event.DeviceIdle, Paused: true, PausedSince: since, Reason: reason}}
	}

	presence := event.Facts{Name: event.NameAgentBreakStart, AgentID: "a", State: event.Break,
		Agent: &event.AgentReport{Presence: event.Break}}
	oneState := event.Facts{Name: event.NameAgentState, AgentID: "a", State: event.Break}
	for name, c := range map[string]struct {
		first, second event.Facts
		since         int64
	}{
		"a pause with another reason": {paused("lunch", 1_795_169_700), paused("paper", 1_795_169_730), 1_795_169_730},
		"the same pause once more":    {paused("lunch", 1_795_169_700), paused("lunch", 1_795_169_700), 1_795_169_700},
		"a presence":                  {presence, presence, 1_795_169_731},
		"a state that is repeated":    {oneState, oneState, 1_795_169_700},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPartition()
			for i, f := range []event.Facts{c.first, c.second} {
				at := int64(1_795_169_700 + 31*i)
				f.TimestampMS = at * 1000
				p.CompleteAndFold(&Event{ID: event.NextID(0, at*1000, 0), Account: "acme", Timestamp: at, Facts: f})
			}

			if e := p.Find(Key{"acme", Agent, "a"}); e == nil || e.State != event.Break || e.Since != c.since {
				t.Errorf("the agent is %s, want a break since %d", e.Append(nil), c.since)
			}
		})
	}
}
