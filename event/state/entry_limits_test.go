package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
)

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
