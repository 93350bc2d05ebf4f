package feed

import (
	"context"
	"slices"
	"strings"
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
	ActionAddListener Action = "hear"
)

// AgentActions and CallActions list the actions.
var (
	AgentActions = []Action{ActionLogin, ActionLogout, ActionBreak, ActionReady, ActionJoin, ActionLeave}
	CallActions  = []Action{ActionHangup, ActionTransfer, ActionHold, ActionResume, ActionListen, ActionWhisper,
		ActionBarge}
)

// Monitors reports whether the action has somebody listen to a call: by the caller's phone, or an AI provider.
func (a Action) Monitors() bool {
	return a == ActionListen || a == ActionWhisper || a == ActionBarge || a == ActionAddListener
}

// Command is an action for a platform. Ids are the platform's.
type Command struct {
	ID        string `json:"id"` // also the interaction of the legs that the command makes
	Action    Action `json:"action"`
	AccountID string `json:"account_id"`
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
	SessionID   string `json:"session_id,omitempty"`  // of its session
	Caller      string `json:"caller,omitempty"`      // of the call that it hears, as NumberOf returns it
}

// Commander is a session whose platform takes commands.
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

// CheckCommand returns fault.KindConflict for an id that could be read as more than one word
// of a platform's command, and for a number or extension that could be read as a dial string: one
// with "@" or "/" names a trunk or another tenant's phone. Returns fault.KindInvalid for a control character in the
// reason or in the agent's name.
func CheckCommand(c Command) error {
	for _, text := range append(
		[]string{c.AgentID, c.QueueID, c.CallID, c.Domain, c.ProviderID, c.SessionID}, c.Queues...) {
		if strings.ContainsFunc(text,
			func(r rune) bool { return !isNumberRune(r) && !strings.ContainsRune("@/:~", r) }) {
			return fault.Conflict("The id %.80q has a character that cannot be sent to the platform", text)
		}
	}

	for _, text := range []string{c.Destination, c.Extension} {
		if strings.ContainsFunc(text, func(r rune) bool { return !isNumberRune(r) }) {
			return fault.Conflict("The number %.80q has a character that cannot be dialled", text)
		}
	}

	if strings.ContainsFunc(c.Reason+c.AgentName, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fault.Invalid("The reason has a control character")
	}

	return nil
}

// NumberOf returns a number that a command can have, "" for what is none, such as "anonymous caller".
func NumberOf(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !isNumberRune(r) }) {
		return ""
	}
	return text
}

func isNumberRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".-_+*#", r)
}

// checkQueue returns fault.KindNotFound if an agent is to join a queue that is not known as one of
// its account: on a platform of several tenants it would get their callers.
func (r *runner) checkQueue(c Command) error {
	if c.QueueID == "" || !slices.Contains(AgentActions, c.Action) {
		return nil
	}
	if r.cfg.Kind == KindKazoo {
		return nil // Crossbar looks a queue up in the agent's account alone
	}

	domain := c.QueueID[strings.LastIndexByte(c.QueueID, '@')+1:]
	if r.accounts.Account(domain, c.QueueID) == c.AccountID {
		return nil
	}

	return fault.NotFound(
		"The account has no such queue. Whose a queue is, its domain decides, or accounts in the settings of the feed %s",
		r.cfg.Name)
}

// Command sends a command over the feed's connection on this node. Returns
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
		if err := r.checkQueue(c); err != nil {
			return err
		}

		return commander.Command(ctx, c)
	}

	return fault.Unavailable(nil, retryCommand, "The feed "+feed+" is not connected")
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

// retryCommand is the time after which a feed may be connected again.
const retryCommand = 5 * time.Second

// FeedOf returns the name of the feed with a source, "" if it is none.
func FeedOf(source string) string {
	name, ok := strings.CutPrefix(source, sourcePrefix)
	if !ok {
		return ""
	}
	return name
}
