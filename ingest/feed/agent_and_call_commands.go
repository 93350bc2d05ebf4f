package feed

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

// Action is what a command does to an agent or a call.
type Action string

// The actions on agents, and on calls.
const (
	ActionLogin  Action = "login"
	ActionLogout Action = "logout"
	ActionBreak  Action = "break"
	ActionReady  Action = "ready"
	ActionJoin   Action = "join"
	ActionLeave  Action = "leave"

	ActionHangup   Action = "hangup"
	ActionTransfer Action = "transfer"
	ActionHold     Action = "hold"
	ActionResume   Action = "resume"
	ActionListen   Action = "listen"
	ActionWhisper  Action = "whisper"
	ActionBarge    Action = "barge"

	// ActionAddListener has an AI provider listen to a call. No request names it: see Listeners of package listening.
	// Stored actions have the word "hear".
	ActionAddListener Action = "hear"
)

// AgentActions and CallActions list the actions that a request may name.
var (
	AgentActions = []Action{ActionLogin, ActionLogout, ActionBreak, ActionReady, ActionJoin, ActionLeave}
	CallActions  = []Action{ActionHangup, ActionTransfer, ActionHold, ActionResume, ActionListen, ActionWhisper,
		ActionBarge}
)

// Monitors reports whether the action has somebody listen to a call: by the caller's phone, or an AI provider.
func (a Action) Monitors() bool {
	return a == ActionListen || a == ActionWhisper || a == ActionBarge || a == ActionAddListener
}

// Command is an action on an agent or a call, to be sent to the platform. Ids are the platform's.
type Command struct {
	ID        string `json:"id"` // the action's own; also the interaction id of the legs that the command makes
	Action    Action `json:"action"`
	AccountID string `json:"account_id"`       // ours
	Domain    string `json:"domain,omitempty"` // of the account

	AgentID   string   `json:"agent_id,omitempty"`
	AgentName string   `json:"agent_name,omitempty"`
	Queues    []string `json:"queues,omitempty"` // of the agent
	QueueID   string   `json:"queue_id,omitempty"`
	Reason    string   `json:"reason,omitempty"`

	CallID      string `json:"call_id,omitempty"`
	Destination string `json:"destination,omitempty"`
	Extension   string `json:"extension,omitempty"`   // of the phone that listens
	ProviderID  string `json:"provider_id,omitempty"` // of the AI provider that hears the call
	SessionID   string `json:"session_id,omitempty"`  // of the AI session in which it hears the call
	Caller      string `json:"caller,omitempty"`      // of the call that it hears, as SafeNumber returns it
}

// Commander is a Session whose platform takes commands.
type Commander interface {
	// Command returns when the platform has taken the command; events tell what it did. Returns
	// fault.KindConflict for what the platform cannot do, fault.KindRefused with the platform's
	// words, and fault.KindUnavailable if the platform did not answer: it may have taken it.
	Command(ctx context.Context, c Command) error
}

// CannotDo returns the error for an action that a platform does not have.
func CannotDo(platform string, c Command, why string) error {
	return fault.Conflict("%s cannot do this (%s): %s", platform, c.Action, why)
}

// Command sends a command over the connection that this node has to the feed's platform. Returns
// fault.KindUnavailable if this node has none, fault.KindNotFound for a queue that is not the
// account's, and the errors of Commander.
func (s *Service) Command(ctx context.Context, feed string, c Command) error {
	for _, r := range s.runners {
		if r.cfg.Name != feed {
			continue
		}

		session := r.session.Load()
		if session == nil {
			break
		}

		commander, ok := (*session).(Commander)
		if !ok {
			return CannotDo(r.cfg.Kind, c, "its feed takes no commands")
		}
		if err := r.checkQueueAccount(c); err != nil {
			return err
		}

		return commander.Command(ctx, c)
	}

	return fault.Unavailable(nil, retryAfterDisconnect, "The feed "+feed+" is not connected")
}

// Connected reports whether this node is connected to the feed's platform.
func (s *Service) Connected(feed string) bool {
	for _, r := range s.runners {
		if r.cfg.Name == feed && r.session.Load() != nil {
			return true
		}
	}
	return false
}

// retryAfterDisconnect is how long a caller should wait for a feed to be connected again.
const retryAfterDisconnect = 5 * time.Second
