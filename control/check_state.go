package control

import (
	"slices"

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

// onBreak reports whether the agent is on a break now, or will be when its call is over.
func onBreak(e *state.Entry) bool { return e.State == event.Break || e.AfterCall == event.Break }
