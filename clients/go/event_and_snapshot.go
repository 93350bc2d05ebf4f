package trunkline

import "encoding/json"

// Filters selects events. Empty lists do not restrict; an event must match all others.
type Filters struct {
	AccountIDs []string `json:"account_ids,omitempty"`
	EventTypes []string `json:"event_types,omitempty"`
	QueueIDs   []string `json:"queue_ids,omitempty"`
	AgentIDs   []string `json:"agent_ids,omitempty"`
	CallIDs    []string `json:"call_ids,omitempty"`
	Names      []string `json:"names,omitempty"` // of facts: exact, or a class such as "call.*"
}

// Event is a message of the channel.
type Event struct {
	ID        string `json:"id"` // the same on every delivery, replay and failover
	Type      string `json:"type"`
	AccountID string `json:"account_id"`
	Timestamp int64  `json:"timestamp"` // Unix seconds
	// the source's event, unchanged; of a call event with the members of docs/channel.md
	Data     json.RawMessage `json:"data"`
	Metadata Metadata        `json:"metadata"`

	Cursor string `json:"-"` // position after this event
	JSON   []byte `json:"-"` // the message as the server sent it
}

// Metadata holds an event's source and facts.
type Metadata struct {
	Source         string `json:"source"`
	OriginalFormat string `json:"original_format"`
	ProcessedAt    int64  `json:"processed_at"` // Unix seconds
	QueueID        string `json:"queue_id,omitempty"`
	Facts          *Facts `json:"facts,omitempty"` // nil: recorded without facts by an older server
}

// Facts describe an event in one vocabulary for all platforms (docs/facts.md).
type Facts struct {
	Name              string `json:"name"`
	AgentID           string `json:"agent_id,omitempty"`
	AgentName         string `json:"agent_name,omitempty"`
	QueueID           string `json:"queue_id,omitempty"`
	CallID            string `json:"call_id,omitempty"`
	InteractionID     string `json:"interaction_id,omitempty"`
	OriginationCallID string `json:"origination_call_id,omitempty"`
	Caller            string `json:"caller,omitempty"`
	Callee            string `json:"callee,omitempty"`
	State             string `json:"state,omitempty"`
	Reason            string `json:"reason,omitempty"`
	PreviousState     string `json:"previous_state,omitempty"`
	PreviousSince     int64  `json:"previous_since,omitempty"` // Unix seconds
	WaitMS            *int64 `json:"wait_ms,omitempty"`
	TalkMS            *int64 `json:"talk_ms,omitempty"`
	TimestampMS       int64  `json:"timestamp_ms,omitempty"`
	AgentState        string `json:"agent_state,omitempty"` // of the agent, after an event about a call
	Contact           string `json:"contact,omitempty"`     // of a device: the registration that the event is about
	Position          int    `json:"position,omitempty"`    // of a call that enters a queue: its place there, from 1
	Agent             *Said  `json:"agent,omitempty"`
}

// Said is what a platform said of an agent, piece by piece.
type Said struct {
	Presence      string `json:"presence,omitempty"`
	Activity      string `json:"activity,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Device        string `json:"device,omitempty"`
	InCall        bool   `json:"in_call,omitempty"`
	Paused        bool   `json:"paused,omitempty"`
	PausedSince   int64  `json:"paused_since,omitempty"`     // Unix seconds
	WrapUpUntilMS int64  `json:"wrap_up_until_ms,omitempty"` // Unix milliseconds
	OtherID       string `json:"other_id,omitempty"`         // a second id of the agent, of app_agent_pool
}

// Snapshot holds the agents, calls and queues, and the cursor at which they are exact.
type Snapshot struct {
	EventID    string  `json:"event_id"`
	Cursor     string  `json:"cursor"`
	Timestamp  int64   `json:"timestamp"`             // Unix seconds
	StateSince int64   `json:"state_since,omitempty"` // Unix seconds; 0: the state is complete
	Agents     []Agent `json:"agents"`
	Calls      []Call  `json:"calls"`
	Queues     []Queue `json:"queues"`
}

// Agent is an agent that is logged in.
type Agent struct {
	AccountID string   `json:"account_id"`
	AgentID   string   `json:"agent_id"`
	AgentName string   `json:"agent_name,omitempty"`
	State     string   `json:"state"`
	Status    string   `json:"status"`
	Since     int64    `json:"since"` // Unix seconds
	Queues    []string `json:"queues,omitempty"`
	CallID    string   `json:"call_id,omitempty"`
	AfterCall string   `json:"after_call,omitempty"` // the state after the call; "": available
	Reason    string   `json:"reason,omitempty"`

	Memberships []Membership `json:"memberships,omitempty"` // the queues in which it is paused or in wrap-up
}

// Membership is an agent's membership in a queue.
type Membership struct {
	QueueID     string `json:"queue_id"`
	State       string `json:"state"` // in which the agent counts in the queue
	Reason      string `json:"reason,omitempty"`
	PausedSince int64  `json:"paused_since,omitempty"`  // Unix seconds
	WrapUpUntil int64  `json:"wrap_up_until,omitempty"` // Unix seconds
}

// Call is a call that has not ended.
type Call struct {
	AccountID     string `json:"account_id"`
	CallID        string `json:"call_id"`
	QueueID       string `json:"queue_id"`
	AgentID       string `json:"agent_id"`
	InteractionID string `json:"interaction_id,omitempty"`
	State         string `json:"state"`
	Since         int64  `json:"since"` // Unix seconds
	Caller        string `json:"caller,omitempty"`
	Position      int    `json:"position,omitempty"` // in its queue, from 1; 0: not waiting
}

// Queue is a queue with calls, members or figures of today.
type Queue struct {
	AccountID        string         `json:"account_id"`
	QueueID          string         `json:"queue_id"`
	Waiting          int            `json:"waiting"`
	LongestWaitSince int64          `json:"longest_wait_since,omitempty"` // Unix seconds; 0: no caller waits
	Talking          int            `json:"talking"`
	Agents           map[string]int `json:"agents"` // logged-in members by state

	// Figures of today in the account's time zone.
	Offered            int64    `json:"offered,omitempty"`
	Answered           int64    `json:"answered,omitempty"`
	Abandoned          int64    `json:"abandoned,omitempty"`
	ServiceLevel       *float64 `json:"service_level,omitempty"` // nil: no calls count
	ServiceLevelStrict *float64 `json:"service_level_strict,omitempty"`
}
