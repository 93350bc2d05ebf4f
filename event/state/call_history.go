package state

import (
	"slices"

	"trunkline/event"
)

// History is what has happened to a call in its queues. Values are immutable.
type History struct {
	// Steps begin with the oldest. Of more than MaxSteps the middle ones are left out.
	Steps []Step `json:"steps,omitempty"`
	// VisitID, in the entry of a leg, is the visit to a queue whose entry has the steps: of a
	// platform where the two have ids of their own.
	VisitID string `json:"visit,omitempty"`
}

// MaxSteps bounds the steps of one call.
const MaxSteps = 16

// Step is one step of a call: by an agent, or else in the queue.
type Step struct {
	Name      event.Name `json:"name"`
	AgentID   string     `json:"agent_id,omitempty"`
	AgentName string     `json:"agent_name,omitempty"`
	QueueID   string     `json:"queue_id,omitempty"` // of a step without an agent
}

// texts returns the texts of a step, for endedCall.
func (s *Step) texts() [4]*string {
	return [...]*string{(*string)(&s.Name), &s.AgentID, &s.AgentName, &s.QueueID}
}

// StepOf returns the step that an event about a call in a queue is.
func StepOf(f *event.Facts) Step {
	agent := f.AgentID != ""
	switch f.Name {
	case event.NameQueueCallEntered, event.NameQueueCallAbandoned:
		agent = false // at whom it rang has steps of its own
	case event.NameQueueCallEnded:
		agent = agent && (f.TalkMS.Known || f.PreviousState == event.Talking || f.PreviousState == event.Held)
	}

	if !agent {
		return Step{Name: f.Name, QueueID: emptyIfTooLong(f.QueueID)}
	}

	return Step{Name: f.Name, AgentID: emptyIfTooLong(f.AgentID), AgentName: emptyIfTooLong(f.AgentName)}
}

// isKept reports whether a history keeps the step for later events: one for less than that, such
// as other, is not kept.
func (s *Step) isKept() bool {
	switch s.Name {
	case event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered,
		event.NameQueueCallAbandoned,
		event.NameQueueCallEnded, event.NameAgentNoAnswer, event.NameCallTransferred:
		return true
	}
	return false
}

// RepeatsLast reports whether a platform reports the last of the steps a second time, which is one
// step. An agent that lets a call ring again does it again.
func (s *Step) RepeatsLast(steps []Step) bool {
	return len(steps) > 0 && steps[len(steps)-1] == *s && s.Name != event.NameAgentNoAnswer
}

// PastSteps returns the steps of h, none of nil.
func (h *History) PastSteps() []Step {
	if h == nil {
		return nil
	}
	return h.Steps
}

// withStep returns the history after a step: h itself after one that the platform reports twice.
// Nothing but a queue begins a history.
func (h *History) withStep(s Step) *History {
	past := h.PastSteps()
	switch {
	case !s.isKept(), s.RepeatsLast(past), len(past) == 0 && s.Name == event.NameCallTransferred:
		return h
	}

	steps := make([]Step, len(past), len(past)+1)
	copy(steps, past)
	if len(steps) == MaxSteps {
		steps = slices.Delete(steps, MaxSteps/2, MaxSteps/2+1)
	}

	return &History{Steps: append(steps, s)}
}

func (h *History) equal(o *History) bool {
	return h == o || h != nil && o != nil && h.VisitID == o.VisitID && slices.Equal(h.Steps, o.Steps)
}

// legOfVisit returns the entry of a visit's leg, on platforms where the visit has an id of its own
// and the leg's is that of the interaction; nil: none. call is the visit's entry before the
// event, nil: none.
func (p *Partition) legOfVisit(e *Event, call *Entry) *Entry {
	f := &e.Facts
	if f.InteractionID == "" || f.InteractionID == f.CallID || call != nil && call.LegOutlivesVisit {
		return nil
	}
	leg := p.lookup(e.Account, Call, f.InteractionID)
	if leg == nil || !leg.LegOutlivesVisit || !leg.Live() {
		return nil
	}
	return leg
}

// historyBefore returns what has happened to the event's call before it, and the entry of its
// leg, see legOfVisit. call is its entry before the event, nil: none.
func (p *Partition) historyBefore(e *Event, call *Entry) (past *History, leg *Entry) {
	if e.Facts.CallID == "" {
		return nil, nil
	}

	leg = p.legOfVisit(e, call)
	if leg != nil && leg.History != nil {
		return p.holderOf(leg).History, leg
	}
	if call == nil || call.State == event.Ended && e.Facts.Name == event.NameQueueCallEntered { // it begins again
		return nil, leg
	}

	return call.History, leg
}

// holderOf returns the entry that has the steps of a leg with a history: that of its last
// visit, while it lasts, or its own.
func (p *Partition) holderOf(leg *Entry) *Entry {
	visit := p.lookup(leg.AccountID, Call, leg.History.VisitID)
	if visit != nil {
		return visit
	}
	return leg
}

// foldHistory adds the event to the history of its call. before and after are the call's
// entries, before is nil if there was none.
func (p *Partition) foldHistory(e *Event, before, after *Entry) {
	past, leg := p.historyBefore(e, before)
	history := past.withStep(StepOf(&e.Facts))
	ended := after.State == event.Ended

	switch {
	case leg == nil:
		after.History = history
		if ended && !after.mayGoOn() {
			after.History = nil
		}
	case history == nil:

	// its last visit
	case leg.History == nil, leg.History.VisitID == after.ID, e.Facts.Name == event.NameQueueCallEntered:
		legHistory := &History{VisitID: after.ID}
		after.History = history
		if ended {
			legHistory, after.History = history, nil
		}
		p.setHistory(e, leg, legHistory)
	default: // an earlier visit, whose end is reported late
		after.History = nil
		p.setHistory(e, p.holderOf(leg), history)
	}
}

// setHistory replaces the history of another entry than the event's call.
func (p *Partition) setHistory(e *Event, entry *Entry, history *History) {
	next := *entry
	next.History = history
	p.put(&next, entry, e.ID)
}

// mayGoOn reports whether the next event may show that the leg of a call that has ended goes
// on: Asterisk reports a time-out of a queue after the event that the caller has left.
func (e *Entry) mayGoOn() bool { return e.LegOutlivesVisit && e.Name == event.NameQueueCallAbandoned }

// appendJSON appends the history as the member of an entry.
func (h *History) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range h.Steps {
		if i == 0 {
			dst = append(dst, `"steps":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = h.Steps[i].appendJSON(dst)
	}

	if len(h.Steps) > 0 {
		dst = append(dst, ']')
	}

	if h.VisitID != "" {
		if len(h.Steps) > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(append(dst, `"visit":`...), h.VisitID)
	}

	return append(dst, '}')
}

func (s *Step) appendJSON(dst []byte) []byte {
	dst = event.AppendString(append(dst, `{"name":`...), string(s.Name))
	for _, member := range [...]struct{ key, value string }{
		{`,"agent_id":`, s.AgentID}, {`,"agent_name":`, s.AgentName}, {`,"queue_id":`, s.QueueID},
	} {
		if member.value != "" {
			dst = event.AppendString(append(dst, member.key...), member.value)
		}
	}
	return append(dst, '}')
}

// estimatedSize estimates the size of the history's member, like Entry.estimatedSize.
func (h *History) estimatedSize() int {
	if h == nil {
		return 0
	}

	n := 48 + len(h.VisitID)
	for i := range h.Steps {
		s := &h.Steps[i]
		n += 72 + len(s.Name) + len(s.AgentID) + len(s.AgentName) + len(s.QueueID)
	}

	return n
}
