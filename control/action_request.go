package control

import (
	"slices"
	"strings"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// Request is what a caller asks for. Exactly one of AgentID and CallID is set.
type Request struct {
	Caller  *identity.Principal
	Account identity.Account // X-Account-ID's, or the caller's own: the agent or call is its, or below it

	AgentID string
	CallID  string // or origination_call_id
	Action  feed.Action

	QueueID     string // of join, leave and login
	Reason      string // of a break
	Destination string // of a transfer
	Key         string // Idempotency-Key; "" for none

	// ServesCall is true for an action of an AI provider on a call that it is connected to. The limit of actions
	// per minute does not apply, because such a provider acts on few calls. An unknown call is not written to
	// the audit log, because the provider's side tries the ids of both legs and one of them may be unknown.
	ServesCall bool

	ListenRequest // of ActionAddListener
}

// ListenRequest says which AI provider is to listen to a call.
type ListenRequest struct {
	ProviderID string // the AI provider
	SessionID  string // of the session that it will have
	ByRule     bool   // a rule asks, for each call of its queues: no limit of actions holds
}

// checkFields checks the fields of a request.
func (r *Request) checkFields() error {
	actions := feed.CallActions
	switch {
	case r.AgentID != "":
		actions = feed.AgentActions
	case r.ProviderID != "":
		actions = []feed.Action{feed.ActionAddListener}
	}

	switch {
	case !slices.Contains(actions, r.Action):
		return fault.InvalidField("action", "unsupported", "action is one of "+joinActions(actions))
	case r.QueueID == "" && (r.Action == feed.ActionJoin || r.Action == feed.ActionLeave):
		return fault.InvalidField("queue_id", "required", "queue_id is required")
	case r.QueueID != "" && r.Action != feed.ActionJoin && r.Action != feed.ActionLeave && r.Action != feed.ActionLogin:
		return fault.InvalidField("queue_id", "unsupported", "queue_id is for login, join and leave")
	case r.Reason != "" && r.Action != feed.ActionBreak:
		return fault.InvalidField("reason", "unsupported", "reason is for break")
	case r.Destination == "" && r.Action == feed.ActionTransfer:
		return fault.InvalidField("destination", "required", "destination is required")
	case r.Destination != "" && r.Action != feed.ActionTransfer:
		return fault.InvalidField("destination", "unsupported", "destination is for transfer")
	case len(r.Reason) > 256 || len(r.Destination) > 64 || len(r.QueueID) > identity.MaxFilterID || len(r.Key) > 255:
		return fault.Invalid("A field is too long")
	}

	return nil
}

func joinActions(actions []feed.Action) string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// mayAct reports whether a role may do an action on some agent or call at all.
func mayAct(role identity.Role, action feed.Action) bool {
	switch role {
	case identity.RoleAdmin, identity.RoleSupervisor:
		return true
	case identity.RoleAgent:
		return !action.Monitors()
	}
	return false
}

func auditAction(r Request) audit.Action {
	switch {
	case r.AgentID != "":
		return audit.AgentControl
	case r.Action.Monitors():
		return audit.CallMonitor
	}
	return audit.CallControl
}
