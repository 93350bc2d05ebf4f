package asterisk

import (
	"time"

	"trunkline/ingest/feed"
)

const (
	maxHeld  = 10_000 // events
	holdTime = 2 * time.Second
)

// hold stores the first events of calls until their account is known.
type hold struct {
	calls   map[string]*heldCall
	order   []*heldCall // oldest first
	count   int         // events held
	unknown [2]map[string]bool
}

type heldCall struct {
	id     string
	since  time.Time
	events []feed.Event
}

func newHold() *hold {
	return &hold{calls: map[string]*heldCall{}, unknown: [2]map[string]bool{{}, {}}}
}

// add stores an event of a call without an account. It returns false for a call whose earlier events
// were released without one.
func (h *hold) add(id string, e feed.Event, now time.Time) bool {
	if h.unknown[0][id] || h.unknown[1][id] {
		return false
	}
	call := h.calls[id]
	if call == nil {
		call = &heldCall{id: id, since: now}
		h.calls[id], h.order = call, append(h.order, call)
	}
	call.events, h.count = append(call.events, e), h.count+1
	return true
}

// release sets the account of a call's events and appends them to out.
func (h *hold) release(out []feed.Event, id, account string) []feed.Event {
	call := h.calls[id]
	if call == nil {
		return out
	}
	for i := range call.events {
		call.events[i].Account, call.events[i].Names = account, nil
	}
	return h.remove(out, call)
}

// remove appends the events of a call to out and deletes the call; expire deletes it from order.
func (h *hold) remove(out []feed.Event, call *heldCall) []feed.Event {
	out = append(out, call.events...)
	h.count -= len(call.events)
	call.events = nil
	delete(h.calls, call.id)
	return out
}

// expire appends to out, without an account, the events of calls that have been held for holdTime, and
// of the oldest calls while more than maxHeld events are held.
func (h *hold) expire(out []feed.Event, now time.Time) []feed.Event {
	for len(h.order) > 0 {
		call := h.order[0]
		if h.calls[call.id] == call {
			if h.count <= maxHeld && now.Sub(call.since) < holdTime {
				return out
			}
			out = h.remove(out, call)
			h.forgo(call.id)
		}
		h.order[0], h.order = nil, h.order[1:]
	}
	return out
}

// forgo records a call whose further events are not held.
func (h *hold) forgo(id string) {
	if len(h.unknown[0]) >= maxLearned {
		h.unknown = [2]map[string]bool{{}, h.unknown[0]}
	}
	h.unknown[0][id] = true
}
