package control

import (
	"slices"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
)

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

// confirmingEvent returns the event that shows that the platform did the action, 0 where no event tells of it;
// confirmed is false if it is not known to be done yet, or if entries is nil: the state is not known.
func confirmingEvent(a *action, entries map[state.Key]*state.Entry) (id event.ID, confirmed bool) {
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

// targetKey returns the key of the agent or call on which the action is.
func (a *action) targetKey() state.Key {
	if a.Command.CallID != "" {
		return state.Key{Account: a.AccountID, Kind: state.Call, ID: a.Command.CallID}
	}
	return state.Key{Account: a.AccountID, Kind: state.Agent, ID: a.Command.AgentID}
}
