package state

import (
	"fmt"
	"reflect"
	"testing"

	"trunkline/event"
)

// historyPlayer applies events about calls, a second apart.
type historyPlayer struct {
	p  *Partition
	id event.ID
}

// play applies the event, and returns it with what has happened before it.
func (h *historyPlayer) play(f event.Facts) *Event {
	h.id = event.NextID(h.id, firstMilli+1000, 3)
	e := &Event{ID: h.id, Account: "acme", Timestamp: firstMilli / 1000, Source: "feed:pbx", Facts: f}
	h.p.CompleteAndFold(e)
	return e
}

func TestALongHistoryLosesItsMiddle(t *testing.T) {
	h := historyPlayer{p: NewPartition()}
	h.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "q"})
	for n := range 30 {
		h.play(event.Facts{Name: event.NameQueueCallOffered, CallID: "c", QueueID: "q", AgentID: fmt.Sprint(n)})
	}

	steps := h.p.Find(Key{"acme", Call, "c"}).History.Steps
	if len(steps) != MaxSteps || steps[0].Name != event.NameQueueCallEntered || steps[7].AgentID != "6" ||
		steps[8].AgentID != "22" || steps[15].AgentID != "29" {
		t.Errorf("got %+v", steps)
	}
}

func TestAHistoryLastsUntilTheCallEnds(t *testing.T) {
	h := historyPlayer{p: NewPartition()}
	h.play(event.Facts{Name: event.NameCallCreated, CallID: "c", InteractionID: "c"})
	h.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "c", InteractionID: "c", QueueID: "q"})
	h.play(event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: "q", AgentID: "x"})
	h.play(event.Facts{Name: event.NameQueueCallEnded, CallID: "c", QueueID: "q", AgentID: "x"})
	e := h.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "c", InteractionID: "c", QueueID: "r"})
	want := []Step{{Name: event.NameQueueCallEntered, QueueID: "q"}, {Name: event.NameQueueCallAnswered, AgentID: "x"},
		{Name: event.NameQueueCallEnded, AgentID: "x"}}
	if got := e.Past.PastSteps(); !reflect.DeepEqual(got, want) {
		t.Errorf("in the next queue: got %+v, want %+v", got, want)
	}

	e = h.play(event.Facts{Name: event.NameCallEnded, CallID: "c"})
	if len(e.Past.PastSteps()) != 4 {
		t.Errorf("at the end: %+v", e.Past.PastSteps())
	}
	if call := h.p.Find(Key{"acme", Call, "c"}); call.History != nil {
		t.Errorf("an ended call keeps %+v", call.History)
	}
}

// A visit with an id of its own: the second begins before the end of the first is reported.
func TestAHistoryFollowsTheLegThroughVisits(t *testing.T) {
	h := historyPlayer{p: NewPartition()}
	h.play(event.Facts{Name: event.NameCallCreated, CallID: "leg", InteractionID: "leg"})
	h.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "v1", InteractionID: "leg", QueueID: "q"})
	h.play(event.Facts{Name: event.NameQueueCallAnswered, CallID: "v1", InteractionID: "leg", QueueID: "q",
		AgentID: "x"})
	h.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "v2", InteractionID: "leg", QueueID: "r"})
	h.play(event.Facts{Name: event.NameQueueCallEnded, CallID: "v1", InteractionID: "leg", QueueID: "q", AgentID: "x"})
	h.play(event.Facts{Name: event.NameQueueCallEnded, CallID: "v2", InteractionID: "leg", QueueID: "r"})
	e := h.play(event.Facts{Name: event.NameQueueCallEntered, CallID: "v3", InteractionID: "leg", QueueID: "s"})
	var got []string

	for _, s := range e.Past.PastSteps() {
		got = append(got, string(s.Name)+" "+s.AgentID+s.QueueID)
	}

	want := []string{"queue.call_entered q", "queue.call_answered x", "queue.call_entered r", "queue.call_ended x",
		"queue.call_ended r"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAHistoryIsReadAsItWasWritten(t *testing.T) {
	for _, h := range []*History{
		{Steps: []Step{{Name: event.NameQueueCallEntered, QueueID: `q"`},
			{Name: event.NameQueueCallOffered, AgentID: "x", AgentName: "Jörg"}}},
		{VisitID: "v"},
		{Steps: []Step{{Name: event.NameQueueCallEntered}}, VisitID: "v"},
	} {
		e := &Entry{AccountID: "a", Kind: Call, ID: "c", EventID: event.NextID(0, firstMilli, 3),
			Facts: event.Facts{Name: event.NameQueueCallEntered, State: event.Waiting}, History: h}
		r, err := ParseRecord(e.Key().String(), e.Append(nil), nil)
		if err != nil || !r.Entry.History.equal(h) {
			t.Errorf("%s: got %+v, %v", e.Append(nil), r.Entry, err)
		}
	}
}
