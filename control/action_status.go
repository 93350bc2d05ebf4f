package control

import (
	"context"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// Status is an action as clients see it.
type Status struct {
	ID      string      `json:"action_id"`
	Action  feed.Action `json:"action"`
	State   State       `json:"state"`
	At      float64     `json:"at"` // Unix seconds of the state
	EventID string      `json:"event_id,omitempty"`
	Message string      `json:"message,omitempty"`
}

// Find returns an action to the caller who asked for it, or to an administrator of its
// account. Returns fault.KindNotFound for others.
func (s *Service) Find(ctx context.Context, caller *identity.Principal, id string) (*Status, error) {
	a, err := s.findAction(ctx, `id = $1`, id)
	if err != nil {
		return nil, err
	}

	isAdmin := caller.Role == identity.RoleAdmin && s.users.Tree().Contains(caller.AccountID, a.AccountID)
	if a.Actor != caller.Actor() && !isAdmin {
		return nil, fault.NotFound("Action not found")
	}

	shown := &Status{ID: a.ID, Action: a.Command.Action, State: a.State, At: float64(a.ChangedAt.UnixMilli()) / 1000,
		EventID: a.EventID, Message: a.Message}
	if shown.State == Asked || shown.State == Sent {
		shown.State = Accepted
	}

	return shown, nil
}
