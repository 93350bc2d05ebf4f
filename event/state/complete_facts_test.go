package state

import (
	"testing"

	"trunkline/event"
)

func TestFactsAreCompletedFromTheStateBefore(t *testing.T) {
	p := newPlayer()
	at := func(second int64) int64 { return firstMilli/1000 + second }
	for i, c := range []struct{ reported, want event.Facts }{
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
		{event.Facts{Name: event.NameQueueCallEnded, CallID: "c"}, // the end is reported again: no second talk
			event.Facts{Name: event.NameQueueCallEnded, CallID: "c", AgentID: "x", AgentName: "Xena", QueueID: "q",
				Caller: "+49301", InteractionID: "i",
				State: event.Ended, PreviousState: event.Ended, PreviousSince: at(10), AgentState: event.Available}},
		{event.Facts{Name: event.NameOther, AgentName: "b\xff\xfed"},
			event.Facts{Name: event.NameOther, AgentName: "b\uFFFD\uFFFDd"}},
	} {
		if got := p.play(c.reported); got != c.want {
			t.Errorf("event %d:\n got %+v\nwant %+v", i+1, got, c.want)
		}
	}

	e := Event{ID: p.last, Account: "a", Timestamp: p.now,
		Facts: event.Facts{Name: event.NameAgentLogout, AgentID: "x"}}
	p.CompleteAndFold(&e)

	if e.Facts.State != "" || p.Find(Key{"a", Agent, "x"}).State != event.Available {
		t.Errorf("an event that was folded before: %+v", e.Facts)
	}
}
