package control

import (
	"slices"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// checkState returns fault.KindConflict if the action would change nothing, or cannot be done
// in the entry's state.
func checkState(e *state.Entry, entries map[state.Key]*state.Entry, r Request) error {
	offline := !e.Live()
	switch r.Action {
	case feed.ActionLogin:
		// A logged-in agent may still log in to one more queue.
		if !offline && (r.QueueID == "" || slices.Contains(e.Queues, r.QueueID)) {
			return fault.Conflict("The agent is logged in")
		}
		return nil
	case feed.ActionLogout, feed.ActionBreak, feed.ActionReady:
		if offline {
			return fault.Conflict("The agent is not logged in")
		}
		if r.Action == feed.ActionReady && !onBreak(e) {
			return fault.Conflict("The agent is not on a break")
		}
		// Another reason is a change of the break.
		if r.Action == feed.ActionBreak && onBreak(e) && r.Reason == e.Reason {
			return fault.Conflict("The agent is on a break")
		}

		return nil
	case feed.ActionJoin:
		if slices.Contains(e.Queues, r.QueueID) {
			return fault.Conflict("The agent is a member of the queue")
		}
		return nil
	case feed.ActionLeave:
		if !slices.Contains(e.Queues, r.QueueID) {
			return fault.Conflict("The agent is not a member of the queue")
		}
		return nil
	case feed.ActionHold:
		if heldLeg(e, entries).State != event.Talking {
			return fault.Conflict("The call is not talking")
		}
		return nil
	case feed.ActionResume:
		if heldLeg(e, entries).State != event.Held {
			return fault.Conflict("The call is not held")
		}
		return nil
	case feed.ActionListen, feed.ActionWhisper, feed.ActionBarge, feed.ActionAddListener:
		if e.State != event.Talking && e.State != event.Held {
			return fault.Conflict("Nobody talks in the call")
		}
	}

	return nil
}

// heldLeg returns the entry that tells whether a call is held: of a call of a queue its caller's leg,
// which may have an id of its own, that of the interaction.
func heldLeg(e *state.Entry, entries map[state.Key]*state.Entry) *state.Entry {
	if e == nil || e.QueueID == "" {
		return e
	}
	leg := entries[legKey(e)]
	if leg == nil {
		return e
	}
	return leg
}

// legKey returns the key of the leg with which a call began.
func legKey(e *state.Entry) state.Key {
	return state.Key{Account: e.AccountID, Kind: state.Call, ID: e.InteractionID}
}

// listeningLeg returns the leg of the phone that has answered to listen, nil if none has: its interaction is
// the action's id. An extension may have several phones, each of which rings with a leg of its own.
func listeningLeg(actionID string, entries map[state.Key]*state.Entry) *state.Entry {
	for key, e := range entries {
		if key.Kind == state.Call && e.InteractionID == actionID && e.State == event.Talking {
			return e
		}
	}
	return nil
}

// onBreak reports whether the agent is on a break now, or will be when its call is over.
func onBreak(e *state.Entry) bool { return e.State == event.Break || e.AfterCall == event.Break }

// targetKey returns the key of the agent or call on which the action is.
func (a *action) targetKey() state.Key {
	if a.Command.CallID != "" {
		return state.Key{Account: a.AccountID, Kind: state.Call, ID: a.Command.CallID}
	}
	return state.Key{Account: a.AccountID, Kind: state.Agent, ID: a.Command.AgentID}
}

// done returns the event that shows that the platform did the action; false if there is none
// yet, or entries is nil: the state is not known.
func done(a *action, entries map[state.Key]*state.Entry) (event.ID, bool) {
	c := &a.Command
	if c.Action == feed.ActionAddListener { // its session tells of itself, by ai.session
		return 0, true
	}
	if entries == nil {
		return 0, false
	}

	e := entries[a.targetKey()]
	switch {
	case c.Action.Monitors():
		e = listeningLeg(c.ID, entries)
	case c.Action == feed.ActionHold || c.Action == feed.ActionResume:
		e = heldLeg(e, entries)
	}

	gone := e == nil || !e.Live()
	// An unknown agent or leg may have events on their way; a call that has left the state has ended.
	if e == nil && c.Action != feed.ActionHangup && c.Action != feed.ActionTransfer {
		return 0, false
	}
	if e != nil && e.EventID.Milli() < a.CreatedAt.Add(-clockMargin).UnixMilli() {
		return 0, false // nothing has happened since
	}

	ok := false
	switch c.Action {
	case feed.ActionLogin:
		ok = !gone && (c.QueueID == "" || slices.Contains(e.Queues, c.QueueID))
	case feed.ActionLogout:
		ok = gone || e.AfterCall == event.Offline
	case feed.ActionBreak:
		ok = onBreak(e)
	case feed.ActionReady:
		ok = !gone && !onBreak(e)
	case feed.ActionJoin:
		ok = slices.Contains(e.Queues, c.QueueID)
	case feed.ActionLeave:
		ok = !slices.Contains(e.Queues, c.QueueID)
	case feed.ActionHangup:
		ok = gone
	case feed.ActionTransfer:
		ok = gone || e.QueueID != c.Before.Queue || e.AgentID != c.Before.Agent || e.Name == event.NameCallTransferred
	case feed.ActionHold:
		ok = e.State == event.Held
	case feed.ActionResume:
		ok = e.State == event.Talking
	default: // listeningLeg returns a phone that has answered
		ok = true
	}

	if !ok || e == nil {
		return 0, ok
	}

	return e.EventID, true
}

// clockMargin is the time by which the clocks of Kafka and of the nodes may differ.
const clockMargin = time.Second
