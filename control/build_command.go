package control

import (
	"context"
	"maps"
	"strings"

	"github.com/google/uuid"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// build finds the agent or call, checks the caller's rights and the state, and returns the
// command.
func (s *Service) build(ctx context.Context, r Request) (*storedCommand, error) {
	entries, err := s.entriesOf(ctx, r)
	if err != nil {
		return nil, err
	}

	e, err := findEntry(entries, r)
	if fault.KindOf(err) == fault.KindNotFound && r.CallID != "" && s.ownCalls != nil {
		return s.buildOwn(ctx, r)
	}
	if err != nil {
		return nil, err
	}

	if err := checkState(e, entries, r); err != nil {
		return nil, err
	}

	account, _ := s.users.Tree().Account(e.AccountID)
	c := &storedCommand{Feed: feed.FeedOfSource(e.Source), Before: entryBefore{Queue: e.QueueID, Agent: e.AgentID},
		Command: feed.Command{
			ID: uuid.NewString(), Action: r.Action, AccountID: e.AccountID, Domain: account.Domain,
			QueueID: r.QueueID, Reason: r.Reason, Destination: r.Destination,
		}}
	if c.Feed == "" {
		return nil, fault.Conflict("No feed connects Trunkline to the platform of this %s", e.Kind)
	}
	if e.Kind == state.Agent {
		c.AgentID, c.AgentName, c.Queues = e.ID, e.AgentName, e.Queues
		return c, nil
	}

	// The request may have named the call by its origination_call_id: the platform knows it by this one.
	c.CallID, c.QueueID, c.AgentID = e.ID, e.QueueID, e.AgentID
	if r.Action == feed.ActionTransfer {
		if err := s.destinations.Check(ctx, e.AccountID, r.Caller.UserID, r.Destination); err != nil {
			return nil, err
		}
	}

	if r.Action == feed.ActionAddListener {
		c.ProviderID, c.SessionID, c.Caller = r.ProviderID, r.SessionID, feed.SafeNumber(e.Caller)
		return c, nil
	}
	if !r.Action.Monitors() {
		return c, nil
	}
	if r.Caller.UserID == "" {
		return nil, fault.New(fault.KindUnprocessable, "An API key has no extension to ring")
	}

	user, err := s.users.FindUser(ctx, r.Caller.UserID)
	if err != nil {
		return nil, err
	}

	if user.PresenceID == "" {
		return nil, fault.New(fault.KindUnprocessable, "The user has no extension to ring: presence_id is not set")
	}

	own, _ := s.users.Tree().Account(user.AccountID)
	c.Extension, c.Domain, c.PhoneAccount = user.PresenceID, own.Domain, user.AccountID
	return c, nil
}

// buildOwn returns the command for a call of Trunkline's own, which no feed knows: it has no feed.
func (s *Service) buildOwn(ctx context.Context, r Request) (*storedCommand, error) {
	account, err := s.ownCalls.CheckCancel(ctx, r.Caller, r.CallID)
	if err != nil {
		return nil, err
	}

	if !s.users.Tree().Contains(r.Account.ID, account) {
		return nil, fault.NotFound("Call not found")
	}

	c := &storedCommand{Command: feed.Command{ID: uuid.NewString(), Action: r.Action, AccountID: account,
		CallID: r.CallID}}
	if r.Action != feed.ActionHangup {
		return nil, feed.CannotDo("Trunkline's own PBX", c.Command, "its calls can only be hung up")
	}

	return c, nil
}

// entriesOf returns the agents or calls that a request may mean. With a call come the agents that have it, whose queues
// tell who sees it, and the leg that tells whether it is held.
func (s *Service) entriesOf(ctx context.Context, r Request) (map[state.Key]*state.Entry, error) {
	entries, err := s.roster.SearchEntries(ctx, r.Account.ID, r.matches)
	if err != nil {
		return nil, err
	}

	var related []state.Key
	for key, e := range entries {
		if key.Kind != state.Call {
			continue
		}
		for _, agent := range agentsOf(e) {
			related = append(related, state.Key{Account: key.Account, Kind: state.Agent, ID: agent})
		}
		related = append(related, legKey(e))
	}

	more, err := s.roster.FindEntries(ctx, r.Account.ID, related...)
	maps.Copy(entries, more)
	return entries, err
}

// matches reports whether an entry is what the request names: its agent, or its call, which has not ended.
func (r *Request) matches(e *state.Entry) bool {
	switch e.Kind {
	case state.Agent:
		return r.AgentID == e.ID
	case state.Call:
		return r.CallID != "" && (r.CallID == e.ID || r.CallID == e.OriginationCallID) && e.Live()
	}
	return false
}

// agentsOf returns the agents that see a call: an agent sees one that rings at his phone, too.
func agentsOf(e *state.Entry) []string { return append([]string{e.AgentID}, e.Ringing...) }

// findEntry returns the entry of a request. Returns fault.KindNotFound for one that the caller
// does not see, fault.KindForbidden for a queue that is not the caller's.
func findEntry(entries map[state.Key]*state.Entry, r Request) (*state.Entry, error) {
	visibility := r.Caller.Visibility()
	queuesOf := func(account, agent string) string {
		known := entries[state.Key{Account: account, Kind: state.Agent, ID: agent}]
		if known == nil {
			return ""
		}
		return strings.Join(known.Queues, event.QueueSeparator)
	}

	for key, e := range entries {
		switch {
		case !r.matches(e):
		// Ids are unique within an account only: one that is out of sight is passed over, for one below that is not.
		case key.Kind == state.Agent:
			if !visibility.Admits(e.AccountID, e.ID, "", queuesOf(e.AccountID, e.ID)) {
				continue
			}
			if r.QueueID != "" && visibility.Role() == identity.RoleSupervisor && !visibility.SeesQueue(r.QueueID) {
				return nil, fault.Forbidden("The queue is not one of yours")
			}

			return e, nil
		default:
			for _, agent := range agentsOf(e) {
				if visibility.Admits(e.AccountID, agent, e.QueueID, queuesOf(e.AccountID, agent)) {
					return e, nil
				}
			}
		}
	}

	if r.AgentID != "" {
		return nil, fault.NotFound("Agent not found")
	}

	return nil, fault.NotFound("Call not found")
}
