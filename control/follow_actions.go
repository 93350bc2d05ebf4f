package control

import (
	"cmp"
	"context"
	"maps"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

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

// findEnd returns the result of confirmingEvent; of a call of our own, whether it has ended: no feed tells of it.
func (s *Service) findEnd(ctx context.Context, a *action, entries map[state.Key]*state.Entry) (event.ID, bool) {
	if a.Command.Feed != "" {
		return confirmingEvent(a, entries)
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
