package stats

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
)

const account = "acme"

func testRules() Rules {
	return Rules{Interval: 15 * time.Minute, Late: 48 * time.Hour,
		Thresholds: func(string, string, int64) Thresholds { return DefaultThresholds() },
		Alerts:     fixedAlerts(DefaultAlerts())}
}

// fixedAlerts are rules that never change.
type fixedAlerts []AlertRule

func (f fixedAlerts) alertsAt(string, int64) (rules []AlertRule, since, until int64) { return f, 0, 0 }
func (f fixedAlerts) alertChanges() int64                                            { return 0 }

// day is when the test's stories begin: a multiple of 15 minutes.
var day = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// script makes events of one partition. Its clock is the source's and the log's.
type script struct {
	events []state.Event
	last   event.ID
}

// at adds an event that happened at "hh:mm:ss" and came to the log at once.
func (s *script) at(clock string, facts event.Facts) *script {
	return s.late(clock, clock, facts)
}

// late adds an event that happened at one time and came to the log at another.
func (s *script) late(happened, logged string, facts event.Facts) *script {
	s.last = event.NextID(s.last, clockTime(logged).UnixMilli(), 3)
	facts.TimestampMS = clockTime(happened).UnixMilli()
	s.events = append(s.events,
		state.Event{ID: s.last, Account: account, Timestamp: facts.TimestampMS / 1000, Facts: facts})
	return s
}

func clockTime(clock string) time.Time {
	days := 0
	if before, rest, ok := strings.Cut(clock, "+"); ok {
		fmt.Sscan(before, &days)
		clock = rest
	}

	t, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}

	return time.Date(2026, 11, 20+days, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

func queueCall(name event.Name, queue, call, agent string) event.Facts {
	return event.Facts{Name: name, QueueID: queue, CallID: call, AgentID: agent}
}

func entered(queue, call string) event.Facts {
	return queueCall(event.NameQueueCallEntered, queue, call, "")
}
func offered(queue, call, agent string) event.Facts {
	return queueCall(event.NameQueueCallOffered, queue, call, agent)
}
func answered(queue, call, agent string) event.Facts {
	return queueCall(event.NameQueueCallAnswered, queue, call, agent)
}
func abandoned(queue, call string) event.Facts {
	return queueCall(event.NameQueueCallAbandoned, queue, call, "")
}
func ended(queue, call, agent string) event.Facts {
	return queueCall(event.NameQueueCallEnded, queue, call, agent)
}
func noAnswer(queue, call, agent string) event.Facts {
	return queueCall(event.NameAgentNoAnswer, queue, call, agent)
}
func login(agent string) event.Facts {
	return event.Facts{Name: event.NameAgentLogin, AgentID: agent, State: event.Available}
}
func logout(agent string) event.Facts {
	return event.Facts{Name: event.NameAgentLogout, AgentID: agent, State: event.Offline}
}
func onBreak(agent, reason string) event.Facts {
	return event.Facts{Name: event.NameAgentBreakStart, AgentID: agent, State: event.Break, Reason: reason}
}
func offBreak(agent string) event.Facts {
	return event.Facts{Name: event.NameAgentBreakEnd, AgentID: agent, State: event.Available}
}
func agentState(agent string, s event.State) event.Facts {
	return event.Facts{Name: event.NameAgentState, AgentID: agent, State: s}
}

// tick is an event that says nothing about queues or agents.
func tick() event.Facts { return event.Facts{Name: event.NameOther} }

func (s *script) foldEvents() *Fold {
	f := NewFold(testRules())
	for i := range s.events {
		f.Apply(&s.events[i])
	}
	return f
}

func (f *Fold) queue(t *testing.T, queue, clock string) QueueRow {
	t.Helper()
	e, ok := f.table.entries[newKey(kindQueue, account, queue, f.table.intervals.startOf(clockTime(clock).UnixMilli()))]
	if !ok {
		return QueueRow{}
	}

	r := *e.(*QueueRow)
	if r.ServiceLevelSeconds != 20 || r.ShortAbandonSeconds != 5 {
		t.Errorf("thresholds %d, %d", r.ServiceLevelSeconds, r.ShortAbandonSeconds)
	}

	r.header, r.ServiceLevelSeconds, r.ShortAbandonSeconds = header{}, 0, 0
	return r
}

func (f *Fold) agent(id, clock string) AgentRow {
	e, ok := f.table.entries[newKey(kindAgent, account, id, f.table.intervals.startOf(clockTime(clock).UnixMilli()))]
	if !ok {
		return AgentRow{}
	}
	r := *e.(*AgentRow)
	r.header = header{}
	return r
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

const minute = 60_000

func TestACallThatWaitsOverAnEdgeCountsWhereItEntered(t *testing.T) {
	f := new(script).
		at("09:14:50", entered("sales", "c1")).
		at("09:15:20", answered("sales", "c1", "a1")).
		at("09:20:20", ended("sales", "c1", "a1")).foldEvents()
	expect(t, "09:00", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 1, Answered: 1, WaitMS: 30_000, WaitMSMax: 30_000, TalkMS: 5 * minute})
	expect(t, "09:15", f.queue(t, "sales", "09:15:00"), QueueRow{})
	expect(t, "agent", f.agent("a1", "09:15:00").Answered, 1)
}

func TestACallTransferredBetweenQueuesIsOfferedInBoth(t *testing.T) {
	f := new(script).
		at("09:00:00", entered("sales", "c1")).
		at("09:00:10", answered("sales", "c1", "a1")).
		at("09:01:10", event.Facts{Name: event.NameCallTransferred, CallID: "leg", InteractionID: ""}).
		at("09:01:10", entered("support", "c1")).
		at("09:01:11", ended("sales", "c1", "a1")). // late news of the first queue
		at("09:01:40", answered("support", "c1", "a2")).
		at("09:03:40", ended("support", "c1", "a2")).
		at("09:05:00", entered("sales", "c2")). // moved on while it waits
		at("09:06:00", entered("support", "c2")).
		at("09:06:10", abandoned("support", "c2")).foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 2, Answered: 1, AnsweredWithin: 1, Transferred: 2,
			WaitMS: 10_000, WaitMSMax: 10_000, TalkMS: minute})
	expect(t, "support", f.queue(t, "support", "09:00:00"), QueueRow{Offered: 2, Answered: 1, Abandoned: 1,
		WaitMS: 30_000, WaitMSMax: 30_000, AbandonWaitMS: 10_000, TalkMS: 2 * minute})
}

func TestTheSwitchsTransferAndHoldAreFoundByInteraction(t *testing.T) {
	of := func(name event.Name, facts event.Facts) event.Facts { facts.Name = name; return facts }
	in, leg := entered("sales", "member"), event.Facts{CallID: "leg", InteractionID: "i1"}
	in.InteractionID = "i1"
	f := new(script).
		at("09:00:00", in).
		at("09:00:10", answered("sales", "member", "a1")).
		at("09:01:00", of(event.NameCallHeld, leg)).
		at("09:01:05", of(event.NameCallHeld, leg)). // the other leg's
		at("09:01:30", of(event.NameCallResumed, leg)).
		at("09:02:00", of(event.NameCallTransferred, leg)).
		at("09:02:00", of(event.NameCallTransferred, leg)).
		at("09:02:00", of(event.NameCallHeld, leg)).
		at("09:02:10", ended("sales", "member", "a1")).foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 1, Answered: 1, AnsweredWithin: 1, Transferred: 1,
			WaitMS: 10_000, WaitMSMax: 10_000, TalkMS: 2 * minute, HoldMS: 40_000})
}

func TestShortAbandonsDoNotLowerTheServiceLevel(t *testing.T) {
	f := new(script).
		at("09:00:00", entered("sales", "c1")).at("09:00:05", abandoned("sales", "c1")). // exactly the limit
		at("09:01:00", entered("sales", "c2")).at("09:01:06", abandoned("sales", "c2")).
		at("09:02:00", entered("sales", "c3")).at("09:02:20", answered("sales", "c3", "a1")). // exactly the limit
		at("09:02:00", entered("sales", "c4")).at("09:02:21", answered("sales", "c4", "a2")).foldEvents()
	row := f.queue(t, "sales", "09:00:00")
	expect(t, "sales", row, QueueRow{Offered: 4, Answered: 2, Abandoned: 2, AbandonedShort: 1, AnsweredWithin: 1,
		WaitMS: 41_000, WaitMSMax: 21_000, AbandonWaitMS: 11_000})

	if level, ok := row.ServiceLevel(); !ok || level != 0.3333 {
		t.Errorf("service level %v %v", level, ok)
	}
	if level, ok := row.ServiceLevelStrict(); !ok || level != 0.25 {
		t.Errorf("strict service level %v %v", level, ok)
	}
	if _, ok := (&QueueRow{Offered: 1, AbandonedShort: 1}).ServiceLevel(); ok {
		t.Error("a service level of nothing")
	}
}

func TestACallOfferedToThreeAgentsAndAnsweredByTheFourth(t *testing.T) {
	s := new(script)
	for _, agent := range []string{"a1", "a2", "a3", "a4"} {
		s.at("08:59:00", login(agent))
	}

	s.at("09:00:00", entered("sales", "c1"))
	s.at("09:00:00", offered("sales", "c1", "a1")).at("09:00:00", offered("sales", "c1", "a1")) // told twice
	s.at("09:00:10", noAnswer("sales", "c1", "a1")).at("09:00:10", noAnswer("sales", "c1", "a1"))
	s.at("09:00:11", offered("sales", "c1", "a2")).at("09:00:21", noAnswer("sales", "c1", "a2"))
	s.at("09:00:22", offered("sales", "c1", "a3")) // still rings when the fourth answers
	s.at("09:00:30", offered("sales", "c1", "a4")).at("09:00:33", answered("sales", "c1", "a4"))
	s.at("09:02:33", ended("sales", "c1", "a4"))
	s.at("09:16:00", tick())
	f := s.foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 1, Answered: 1, WaitMS: 33_000, WaitMSMax: 33_000, TalkMS: 2 * minute})
	a1, a4 := f.agent("a1", "09:00:00"), f.agent("a4", "09:00:00")
	expect(t, "a1", a1, AgentRow{LoggedInMS: 15 * minute, AvailableMS: 15*minute - 10_000, Offered: 1, NoAnswer: 1})
	expect(t, "a4", a4,
		AgentRow{LoggedInMS: 15 * minute, AvailableMS: 13*minute - 3_000, TalkingMS: 2 * minute, Offered: 1,
			Answered: 1})
	a3 := f.agent("a3", "09:00:00")
	expect(t, "a3", [2]int64{a3.Offered, a3.NoAnswer}, [2]int64{1, 0})
}

func TestAnAgentOnTwoQueuesHasOneRowAndItsWrapUpCountsForTheCallsQueue(t *testing.T) {
	f := new(script).
		at("09:00:00", login("a1")).
		at("09:01:00", entered("sales", "c1")).at("09:01:10", offered("sales", "c1", "a1")).at("09:01:12",
		answered("sales", "c1", "a1")).
		at("09:02:12", ended("sales", "c1", "a1")).at("09:02:12", agentState("a1", event.WrapUp)).at("09:02:42",
		agentState("a1", event.Available)).
		at("09:03:00", entered("support", "c2")).at("09:03:10", offered("support", "c2", "a1")).at("09:03:15",
		answered("support", "c2", "a1")).
		at("09:05:15", ended("support", "c2", "a1")).at("09:05:15", agentState("a1", event.WrapUp)).at("09:05:25",
		agentState("a1", event.Available)).
		at("09:10:00", logout("a1")).foldEvents()

	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 1, Answered: 1, AnsweredWithin: 1, WaitMS: 12_000, WaitMSMax: 12_000, TalkMS: minute,
			WrapUpMS: 30_000})
	expect(t, "support", f.queue(t, "support", "09:00:00"),
		QueueRow{Offered: 1, Answered: 1, AnsweredWithin: 1, WaitMS: 15_000, WaitMSMax: 15_000, TalkMS: 2 * minute,
			WrapUpMS: 10_000})
	expect(t, "a1", f.agent("a1", "09:00:00"),
		AgentRow{LoggedInMS: 10 * minute, AvailableMS: 10*minute - 3*minute - 40_000 - 7_000,
			TalkingMS: 3 * minute, WrapUpMS: 40_000, Offered: 2, Answered: 2})
}

func TestABreakOverMidnightIsSplitAtTheEdges(t *testing.T) {
	f := new(script).
		at("23:40:00", login("a1")).
		at("23:50:00", onBreak("a1", "lunch")).
		at("1+00:20:00", offBreak("a1")).
		at("1+00:25:00", logout("a1")).foldEvents()
	lunch := func(ms int64) map[string]int64 { return map[string]int64{"lunch": ms} }
	expect(t, "23:30", f.agent("a1", "23:30:00"), AgentRow{LoggedInMS: 5 * minute, AvailableMS: 5 * minute})
	expect(t, "23:45", f.agent("a1", "23:45:00"),
		AgentRow{LoggedInMS: 15 * minute, AvailableMS: 5 * minute, BreakMS: 10 * minute,
			BreakMSByReason: lunch(10 * minute)})
	expect(t, "00:00", f.agent("a1", "1+00:00:00"),
		AgentRow{LoggedInMS: 15 * minute, BreakMS: 15 * minute, BreakMSByReason: lunch(15 * minute)})
	expect(t, "00:15", f.agent("a1", "1+00:15:00"),
		AgentRow{LoggedInMS: 10 * minute, AvailableMS: 5 * minute, BreakMS: 5 * minute,
			BreakMSByReason: lunch(5 * minute)})
}

func TestCallsOfASwitchThatDiedEndByResyncAndAreNotAbandoned(t *testing.T) {
	resync := func(facts event.Facts) event.Facts { facts.Reason = "resync"; return facts }
	f := new(script).
		at("09:00:00", entered("sales", "talks")).at("09:00:10", answered("sales", "talks", "a1")).
		at("09:01:00", entered("sales", "waits")).
		at("09:06:00", resync(ended("sales", "waits", ""))).
		at("09:06:10", resync(ended("sales", "talks", ""))).foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 2, Answered: 1, AnsweredWithin: 1, WaitMS: 10_000, WaitMSMax: 10_000, TalkMS: 6 * minute})
}

func TestEventsThatComeLateOrOutOfOrderCountInTheirOwnInterval(t *testing.T) {
	waited := abandoned("sales", "c3")
	waited.WaitMS = event.MillisOf(30_000)
	f := new(script).
		late("09:14:00", "09:40:00", entered("sales", "c1")).
		late("09:14:10", "09:40:00", event.Facts{Name: event.NameCallEnded, CallID: "c1"}). // the hang-up first
		late("09:14:10", "09:40:01", abandoned("sales", "c1")).
		late("09:10:00", "09:40:02", entered("sales", "c2")).
		late("09:12:00", "09:40:03", ended("sales", "c2", "a1")). // the end before the answer
		late("09:10:20", "09:40:04", answered("sales", "c2", "a1")).
		late("09:15:10", "09:40:05", waited). // its entering comes later
		late("09:14:40", "09:40:06", entered("sales", "c3")).foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 3, Answered: 1, AnsweredWithin: 1, Abandoned: 2,
			WaitMS: 20_000, WaitMSMax: 30_000, AbandonWaitMS: 40_000, TalkMS: 100_000})
	expect(t, "09:30", f.queue(t, "sales", "09:30:00"), QueueRow{})
}

func TestALateChangeOfStateMovesTimeThatWasCounted(t *testing.T) {
	f := new(script).
		at("09:00:00", login("a1")).
		at("09:16:30", tick()). // closes the interval
		late("09:14:00", "09:17:00", onBreak("a1", "")).
		at("09:20:00", logout("a1")).foldEvents()
	expect(t, "09:00", f.agent("a1", "09:00:00"),
		AgentRow{LoggedInMS: 15 * minute, AvailableMS: 14 * minute, BreakMS: minute})
	expect(t, "09:15", f.agent("a1", "09:15:00"), AgentRow{LoggedInMS: 5 * minute, BreakMS: 5 * minute})
}

func TestAClockSetBackCountsNoTimeTwice(t *testing.T) {
	f := new(script).
		at("09:00:00", login("a1")).
		at("09:10:00", onBreak("a1", "")).
		late("08:20:00", "09:20:00", offBreak("a1")). // the source's clock went back an hour
		late("08:25:00", "09:25:00", onBreak("a1", "")).
		late("08:30:00", "09:30:00", logout("a1")).
		late("07:59:00", "09:31:00", entered("sales", "c1")).
		late("07:58:00", "09:32:00", answered("sales", "c1", "a2")).foldEvents() // and again
	var total int64

	for _, clock := range []string{"08:00:00", "08:15:00", "08:30:00", "08:45:00", "09:00:00", "09:15:00", "09:30:00"} {
		row := f.agent("a1", clock)
		total += row.LoggedInMS
		for _, ms := range []int64{row.LoggedInMS, row.AvailableMS, row.BreakMS} {
			if ms < 0 || ms > 15*minute {
				t.Errorf("%s: %+v", clock, row)
			}
		}
	}

	expect(t, "logged in, ms", total, 10*minute)
	expect(t, "sales", f.queue(t, "sales", "07:45:00"), QueueRow{Offered: 1, Answered: 1, AnsweredWithin: 1})
}

// A switch that writes the year 1970 in some events of a call.
func TestATimeBeforeTheCallEnteredIsTheEntry(t *testing.T) {
	const old = "-20000+00:00:00" // days before the story
	held, resumed := event.Facts{Name: event.NameCallHeld, CallID: "c1"}, event.Facts{Name: event.NameCallResumed,
		CallID: "c1"}
	f := new(script).
		at("09:00:00", entered("sales", "c1")).
		late(old, "09:00:10", answered("sales", "c1", "a1")).
		late(old, "09:00:20", held).
		at("09:01:00", resumed).
		at("09:02:00", ended("sales", "c1", "a1")).
		at("09:03:00", entered("sales", "c2")).
		late(old, "09:03:10", abandoned("sales", "c2")).foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00"),
		QueueRow{Offered: 2, Answered: 1, AnsweredWithin: 1, Abandoned: 1, AbandonedShort: 1,
			TalkMS: 2 * minute, HoldMS: minute})
}

func TestAClockFarAheadIsNotBelieved(t *testing.T) {
	f := new(script).late("3+09:00:00", "09:00:00", entered("sales", "c1")).foldEvents()
	expect(t, "sales", f.queue(t, "sales", "09:00:00").Offered, 1)
}

func TestWhatIsOverIsForgotten(t *testing.T) {
	s := new(script).
		at("09:00:00", login("a1")).at("09:00:00", entered("sales", "c1")).at("09:00:10", abandoned("sales", "c1")).
		at("09:05:00", logout("a1")).at("09:06:00", entered("sales", "lost"))
	f := s.foldEvents()

	for i := range 100 {
		s.at(fmt.Sprintf("%d+09:00:00", 4+i/50*3), tick()) // an alert ends with the lost call, and is kept then
		f.Apply(&s.events[len(s.events)-1])
	}

	if len(f.table.entries) != 0 || len(f.table.timers) != 0 || len(f.table.calls) != 0 {
		t.Errorf("%d entries, %d timers, %d interactions are left", len(f.table.entries), len(f.table.timers), len(f.table.calls))
	}

	s.late("09:07:00", "7+09:00:01", entered("sales", "late"))
	f.Apply(&s.events[len(s.events)-1])
	if len(f.table.entries) != 0 || f.Ignored() != 1 {
		t.Errorf("an event that came days late: %d entries, %d ignored", len(f.table.entries), f.Ignored())
	}
}

// randomDay makes events of a day and a half in no sensible order.
func randomDay(seed uint64, n int) []state.Event {
	r := rand.New(rand.NewPCG(seed, 7))
	names := []event.Name{event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart,
		event.NameAgentBreakEnd, event.NameAgentState,
		event.NameAgentNoAnswer, event.NameQueueCallEntered, event.NameQueueCallEntered, event.NameQueueCallOffered,
		event.NameQueueCallAnswered,
		event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallHeld, event.NameCallResumed,
		event.NameCallTransferred,
		event.NameCallEnded, event.NameOther}
	states := []event.State{event.Available, event.WrapUp, event.Break, event.Talking, event.Offline, ""}
	events, last, now := make([]state.Event, 0, n), event.ID(0), day

	for range n {
		now = now.Add(time.Duration(r.ExpFloat64() * float64(36*time.Hour) / float64(n)))
		last = event.NextID(last, now.UnixMilli(), 3)
		at := now

		switch r.IntN(10) {
		case 0:
			at = at.Add(-time.Duration(r.ExpFloat64() * float64(time.Hour)))
		case 1:
			at = at.Add(time.Duration(r.ExpFloat64() * float64(time.Minute)))
		}

		facts := event.Facts{Name: names[r.IntN(len(names))], TimestampMS: at.UnixMilli(),
			CallID: fmt.Sprint("c", r.IntN(20)), QueueID: fmt.Sprint("q", r.IntN(3)),
			InteractionID: fmt.Sprint("i", r.IntN(10)),
			AgentID:       fmt.Sprint("a", r.IntN(8)), Reason: []string{"", "lunch", "coffee"}[r.IntN(3)]}
		if facts.Name == event.NameAgentState {
			facts.State = states[r.IntN(len(states))]
		}
		if r.IntN(3) == 0 {
			facts.WaitMS = event.MillisOf(int64(r.IntN(60_000)))
		}

		events = append(events, state.Event{ID: last, Account: account, Timestamp: at.Unix(), Facts: facts})
	}

	return events
}

// topic is the content of cc.stats.
type topic map[string]string

func (to topic) applyFlush(f *Fold) {
	f.Flush(func(r Record) {
		to[r.Key] = string(r.Value)
		if r.Value == nil {
			delete(to, r.Key)
		}
	})
}

func (to topic) loadFold(last event.ID) *Fold {
	values := map[string][]byte{}
	for key, value := range to {
		values[key] = []byte(value)
	}
	f := NewFold(testRules())
	if foreign := f.Load(values, last); len(foreign) > 0 {
		panic(foreign)
	}
	return f
}

// Wherever the log is cut, taken over and read again, the records are the same.
func TestAnyCutTakeoverAndRepeatGiveTheSameBytes(t *testing.T) {
	for seed := range uint64(2) {
		events := randomDay(seed, 1000)
		want := topic{}
		whole := NewFold(testRules())

		for i := range events {
			whole.Apply(&events[i])
		}

		want.applyFlush(whole)

		r := rand.New(rand.NewPCG(seed, 1))
		got, f := topic{}, NewFold(testRules())
		for i := range events {
			f.Apply(&events[i])
			switch r.IntN(60) {
			case 0:
				got.applyFlush(f)
			case 1:
				got.applyFlush(f)
				f = got.loadFold(f.Last())
			case 2: // repeats
				for j := max(0, i-20); j <= i; j++ {
					f.Apply(&events[j])
				}
			}
		}

		got.applyFlush(f)
		if !maps.Equal(got, want) {
			for key := range want {
				if got[key] != want[key] {
					t.Fatalf("seed %d, %s:\n got %s\nwant %s", seed, key, got[key], want[key])
				}
			}
			t.Fatalf("seed %d: %d records, want %d", seed, len(got), len(want))
		}
	}
}

// The figures are consistent for any sequence of events.
func TestFiguresAddUp(t *testing.T) {
	for seed := range uint64(2) {
		f := NewFold(testRules())
		events := randomDay(seed, 1000)
		for i := range events {
			f.Apply(&events[i])
		}

		for _, e := range f.table.entries {
			switch r := e.(type) {
			case *QueueRow:
				if r.Answered+r.Abandoned > r.Offered || r.AbandonedShort > r.Abandoned ||
					r.AnsweredWithin > r.Answered ||
					r.Transferred > r.Offered || min(r.WaitMS, r.AbandonWaitMS, r.TalkMS, r.HoldMS, r.WrapUpMS) < 0 {
					t.Errorf("%s: %+v", r.key, r)
				}
			case *AgentRow:
				var reasons int64
				for _, ms := range r.BreakMSByReason {
					reasons += ms
				}

				if r.LoggedInMS > 15*minute || r.AvailableMS+r.TalkingMS+r.WrapUpMS+r.BreakMS > r.LoggedInMS ||
					min(r.AvailableMS, r.TalkingMS, r.WrapUpMS, r.BreakMS) < 0 || reasons > r.BreakMS {
					t.Errorf("%s: %+v", r.key, r)
				}
			}
		}
	}
}
