package control

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
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

// Run follows the open actions to their end, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	swept := time.Time{}
	for ctx.Err() == nil {
		open, err := s.listActions(ctx, `state IN ('asked', 'sent', 'accepted')`)
		if err == nil && len(open) > 0 {
			s.watch(ctx, open)
		}
		if err == nil && time.Since(swept) > sweepInterval {
			swept = time.Now()
			err = s.announceMissed(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("following actions failed, will retry", "error", err)
			retry.Sleep(ctx, time.Second)
		}

		s.awaitWork(ctx, len(open) > 0)
	}

	return nil
}

// awaitWork waits until open actions are to be looked at again; without any, until one is stored here, or for
// sweepInterval: a killed node may have left some.
func (s *Service) awaitWork(ctx context.Context, open bool) {
	interval := sweepInterval
	if open {
		interval = watchInterval
	}

	timer := time.NewTimer(interval)
	defer timer.Stop()

	select {
	case <-ctx.Done():
	case <-s.storedSignal:
	case <-timer.C:
	}
}

// watch confirms open actions, and ends those without an event in confirmTimeout.
func (s *Service) watch(ctx context.Context, open []*action) {
	states := s.statesOf(ctx, open)
	for _, a := range open {
		var err error
		late := s.now().Sub(a.CreatedAt) > confirmTimeout
		id, ok := s.findEnd(ctx, a, states[a.stateAccount()])
		// An action that nobody has sent was not the cause of what happened.
		if ok && a.State != Asked {
			eventID := ""
			if id != 0 {
				eventID = id.String()
			}

			// One that is only sent is left to the node that waits for the platform's answer: it may be a refusal.
			_, err = s.change(ctx, a, Confirmed, eventID, "", "", Accepted)
			if err == nil && late && a.State == Sent { // the node that sent it has died
				_, err = s.change(ctx, a, Confirmed, eventID, "", "", Sent)
			}
		} else if late {
			err = s.giveUp(ctx, a)
		}

		if err != nil && ctx.Err() == nil {
			s.log.Warn("ending an action failed, will retry", "action_id", a.ID, "error", err)
		}
	}
}

// stateAccount returns the account whose state has what tells of the action. Whoever listens may do so from an account
// above the call's: the state of that one has both legs.
func (a *action) stateAccount() string { return cmp.Or(a.Command.PhoneAccount, a.AccountID) }

// statesOf returns the entries that tell whether actions are done, by stateAccount. Those of an account whose state
// cannot be read are nil.
func (s *Service) statesOf(ctx context.Context, open []*action) map[string]map[state.Key]*state.Entry {
	actions := make(map[string][]*action)
	for _, a := range open {
		actions[a.stateAccount()] = append(actions[a.stateAccount()], a)
	}

	states := make(map[string]map[state.Key]*state.Entry)
	for account, ofAccount := range actions {
		entries, err := s.stateOf(ctx, account, ofAccount)
		if err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the state for actions is not known, will retry", "error", err)
			}
			continue
		}

		states[account] = entries
	}

	return states
}

// stateOf returns the entries of one account that tell whether its actions are done: of their agents and calls, of the
// legs that are held, and of the phones that listen.
func (s *Service) stateOf(ctx context.Context, account string,
	actions []*action) (map[state.Key]*state.Entry, error) {
	var targets, legs []state.Key
	listened := make(map[string]bool) // ids of actions
	for _, a := range actions {
		switch {
		case a.Command.Feed == "" || a.Command.Action == feed.ActionAddListener: // the state does not tell
		case a.Command.Action.Monitors():
			listened[a.ID] = true
		default:
			targets = append(targets, a.targetKey())
		}
	}

	entries, err := s.roster.FindEntries(ctx, account, targets...)
	if err != nil {
		return nil, err
	}

	for _, e := range entries {
		if e.Kind == state.Call {
			legs = append(legs, legKey(e))
		}
	}

	more, err := s.roster.FindEntries(ctx, account, legs...)
	if err == nil && len(listened) > 0 {
		maps.Copy(entries, more)
		more, err = s.roster.SearchEntries(ctx, account,
			func(e *state.Entry) bool { return e.Kind == state.Call && listened[e.InteractionID] })
	}
	if err != nil {
		return nil, err
	}

	maps.Copy(entries, more)
	return entries, nil
}

// findEnd returns done's result; of a call of our own, whether it has ended: no feed tells of it.
func (s *Service) findEnd(ctx context.Context, a *action, entries map[state.Key]*state.Entry) (event.ID, bool) {
	if a.Command.Feed != "" {
		return done(a, entries)
	}
	if s.ownCalls == nil { // another node follows it
		return 0, false
	}

	ended, err := s.ownCalls.HasEnded(ctx, a.Command.CallID)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the state of a call is not known, will retry", "action_id", a.ID, "error", err)
	}

	return 0, ended && err == nil
}

// giveUp ends an action for which nothing has happened in confirmTimeout.
func (s *Service) giveUp(ctx context.Context, a *action) error {
	if a.State == Asked {
		_, err := s.change(ctx, a, Refused, "", "The action was not sent: the node that took it has ended",
			fault.KindUnavailable, Asked)
		return err
	}
	_, err := s.change(ctx, a, Unconfirmed, "", "No event of the platform within 10 s", "", Accepted, Sent)
	return err
}

// announceMissed publishes states whose event is missing, because a node was killed.
func (s *Service) announceMissed(ctx context.Context) error {
	missed, err := s.listActions(ctx, `announced <> state AND state <> 'sent' AND changed_at < $1`,
		s.now().Add(-sweepInterval).UnixMilli())
	for _, a := range missed {
		s.announce(ctx, a)
	}
	return err
}
