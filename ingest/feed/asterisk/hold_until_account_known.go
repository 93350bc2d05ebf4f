package asterisk

import (
	"time"

	"trunkline/ingest/feed"
)

const (
	maxHeldEvents = 10_000
	holdTime      = 2 * time.Second
)

// eventHold stores the first events of calls until their account is known.
type eventHold struct {
	calls        map[string]*heldCall
	order        []*heldCall        // oldest first
	eventCount   int                // events held
	unknownCalls [2]map[string]bool // whose events went without an account: the newest, and those before them
}

// heldCall has the events of a call whose account is not known yet.
type heldCall struct {
	id     string    // the Linkedid
	since  time.Time // when the first of them was read
	events []feed.Event
}

func newHold() *eventHold {
	return &eventHold{calls: map[string]*heldCall{}, unknownCalls: [2]map[string]bool{{}, {}}}
}

// add holds an event of a call without an account. It returns false, and holds nothing, for a call whose earlier events
// were released without one.
func (h *eventHold) add(id string, e feed.Event, now time.Time) bool {
	// Its earlier events went without an account: these would only be late.
	if h.unknownCalls[0][id] || h.unknownCalls[1][id] {
		return false
	}

	call := h.calls[id]
	if call == nil {
		call = &heldCall{id: id, since: now}
		h.calls[id], h.order = call, append(h.order, call)
	}

	call.events, h.eventCount = append(call.events, e), h.eventCount+1
	return true
}

// release sets the account of a call's events and appends them to out.
func (h *eventHold) release(out []feed.Event, id, account string) []feed.Event {
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
func (h *eventHold) remove(out []feed.Event, call *heldCall) []feed.Event {
	out = append(out, call.events...)
	h.eventCount -= len(call.events)
	call.events = nil
	delete(h.calls, call.id)
	return out
}

// releaseExpired appends to out, without an account, the events of calls that have been held for holdTime, and
// of the oldest calls while more than maxHeldEvents events are held.
func (h *eventHold) releaseExpired(out []feed.Event, now time.Time) []feed.Event {
	for len(h.order) > 0 {
		call := h.order[0]
		// Else it was released, and only its place in order is left.
		if h.calls[call.id] == call {
			if h.eventCount <= maxHeldEvents && now.Sub(call.since) < holdTime {
				return out
			}
			out = h.remove(out, call)
			h.setUnknown(call.id)
		}

		h.order[0], h.order = nil, h.order[1:]
	}

	return out
}

// setUnknown records a call whose further events are not held.
func (h *eventHold) setUnknown(id string) {
	if len(h.unknownCalls[0]) >= maxCachedIDs {
		h.unknownCalls = [2]map[string]bool{{}, h.unknownCalls[0]}
	}
	h.unknownCalls[0][id] = true
}
