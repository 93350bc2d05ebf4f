package event

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Name is an event name of docs/facts.md. Equal events have the same name on every
// platform.
type Name string

// The names. Every message has one of them in metadata.facts and in its header
// "name".
const (
	NameAgentLogin      Name = "agent.login"
	NameAgentLogout     Name = "agent.logout"
	NameAgentBreakStart Name = "agent.break_start"
	NameAgentBreakEnd   Name = "agent.break_end"
	NameAgentState      Name = "agent.state"
	NameAgentQueueJoin  Name = "agent.queue_join"
	NameAgentQueueLeave Name = "agent.queue_leave"
	NameAgentNoAnswer   Name = "agent.no_answer"

	NameQueueCallEntered   Name = "queue.call_entered"
	NameQueueCallOffered   Name = "queue.call_offered"
	NameQueueCallAnswered  Name = "queue.call_answered"
	NameQueueCallAbandoned Name = "queue.call_abandoned"
	NameQueueCallEnded     Name = "queue.call_ended"

	NameCallCreated     Name = "call.created"
	NameCallRinging     Name = "call.ringing"
	NameCallAnswered    Name = "call.answered"
	NameCallBridged     Name = "call.bridged"
	NameCallHeld        Name = "call.held"
	NameCallResumed     Name = "call.resumed"
	NameCallTransferred Name = "call.transferred"
	NameCallDTMF        Name = "call.dtmf"
	NameCallEnded       Name = "call.ended"

	NameConferenceJoined   Name = "conference.joined"
	NameConferenceLeft     Name = "conference.left"
	NameDeviceRegistered   Name = "device.registered"
	NameDeviceUnregistered Name = "device.unregistered"

	NameCallProgress    Name = "call.progress"
	NameRecordingStored Name = "recording.stored"
	NameAISession       Name = "ai.session"
	NameControlAction   Name = "control.action"
	NameCallTranscript  Name = "call.transcript"

	NameAlertStarted     Name = "alert.started"
	NameAlertEnded       Name = "alert.ended"
	NameFeedConnected    Name = "feed.connected"
	NameFeedDisconnected Name = "feed.disconnected"
	NameOther            Name = "other"
)

var allNames = [...]Name{
	NameAgentLogin, NameAgentLogout, NameAgentBreakStart, NameAgentBreakEnd, NameAgentState,
	NameAgentQueueJoin, NameAgentQueueLeave, NameAgentNoAnswer,
	NameQueueCallEntered, NameQueueCallOffered, NameQueueCallAnswered, NameQueueCallAbandoned, NameQueueCallEnded,
	NameCallCreated, NameCallRinging, NameCallAnswered, NameCallBridged, NameCallHeld, NameCallResumed,
	NameCallTransferred, NameCallDTMF, NameCallEnded,
	NameConferenceJoined, NameConferenceLeft, NameDeviceRegistered, NameDeviceUnregistered,
	NameCallProgress, NameRecordingStored, NameAISession, NameControlAction, NameCallTranscript,
	NameAlertStarted, NameAlertEnded, NameFeedConnected, NameFeedDisconnected, NameOther,
}

// Names returns every name, in the order of docs/facts.md.
func Names() []Name { return append([]Name(nil), allNames[:]...) }

// Type returns the type of every message with the name, on every platform. ok is false
// for names whose type the format chooses.
func (n Name) Type() (t Type, ok bool) {
	switch n {
	case NameAgentLogin:
		return AgentLogin, true
	case NameAgentLogout:
		return AgentLogout, true
	case NameAgentBreakStart:
		return AgentBreakStart, true
	case NameAgentBreakEnd:
		return AgentBreakEnd, true
	case NameAgentQueueJoin:
		return AgentQueueJoin, true
	case NameAgentQueueLeave:
		return AgentQueueLeave, true
	}

	return "", false
}

// State is the state of an agent, call or device.
type State string

// The states. An agent is Offline, Available, Ringing, Talking, WrapUp, Break or
// OtherState; a call Waiting, Ringing, Talking, Held or Ended; a device
// Registered or Unregistered.
const (
	Offline    State = "offline"
	Available  State = "available"
	Ringing    State = "ringing"
	Talking    State = "talking"
	WrapUp     State = "wrap_up"
	Break      State = "break"
	OtherState State = "other"

	Waiting State = "waiting"
	Held    State = "held"
	Ended   State = "ended"

	Registered   State = "registered"
	Unregistered State = "unregistered"
)

// ReasonResync is the reason of facts that a live feed found by comparing the platform
// with the state.
const ReasonResync = "resync"

// ReasonParked is the reason of a call that is held because it is parked.
const ReasonParked = "parked"

// Facts describes an event in the same terms for every platform: the object
// metadata.facts of a message. Name is always set; every other field only if the
// source reports it or it follows from the state before the event. Ids are those of
// the source, unchanged.
type Facts struct {
	Name              Name   `json:"name"`
	AgentID           string `json:"agent_id,omitempty"`
	AgentName         string `json:"agent_name,omitempty"`
	QueueID           string `json:"queue_id,omitempty"`
	CallID            string `json:"call_id,omitempty"` // of the caller in the queue, or else of the leg
	InteractionID     string `json:"interaction_id,omitempty"`
	OriginationCallID string `json:"origination_call_id,omitempty"`
	Caller            string `json:"caller,omitempty"`
	Callee            string `json:"callee,omitempty"`
	State             State  `json:"state,omitempty"` // after the event
	Reason            string `json:"reason,omitempty"`
	PreviousState     State  `json:"previous_state,omitempty"`
	PreviousSince     int64  `json:"previous_since,omitempty"` // Unix seconds
	WaitMS            Millis `json:"wait_ms,omitzero"`
	TalkMS            Millis `json:"talk_ms,omitzero"`
	TimestampMS       int64  `json:"timestamp_ms,omitempty"` // Unix milliseconds, the source's clock

	// of agent_id after an event about a call, or where State was not said
	AgentState State      `json:"agent_state,omitempty"`
	Contact    string     `json:"contact,omitempty"`  // of a device: the registration that the event is about
	Position   int32      `json:"position,omitempty"` // of a call that enters a queue: its place there, from 1
	Agent      *AgentSaid `json:"agent,omitempty"`    // what the platform said of the agent, piece by piece
}

// Activity is what a platform says an agent does at the moment, apart from whether it is
// at work.
type Activity string

// The activities. With NotReady the agent is at work, and gets no calls.
const (
	ActivityNone     Activity = "none"
	ActivityNotReady Activity = "not_ready"
	ActivityRinging  Activity = "ringing"
	ActivityTalking  Activity = "talking"
	ActivityWrapUp   Activity = "wrap_up"
)

// Device is the state of an agent's phone.
type Device string

// The states of phones. DeviceBusy is busy without a call (do not disturb), DeviceWrapUp
// is kept busy by its platform after a call. DeviceUnknown tells nothing.
const (
	DeviceIdle        Device = "idle"
	DeviceRinging     Device = "ringing"
	DeviceInUse       Device = "in_use"
	DeviceBusy        Device = "busy"
	DeviceWrapUp      Device = "wrap_up"
	DeviceUnreachable Device = "unreachable"
	DeviceUnknown     Device = "unknown"
)

// AgentSaid is what a platform said of an agent, where it says its parts separately.
// State of the facts is then what follows from all that is known of the agent. From
// Device on, the fields are about its phone and its membership in the queue queue_id; they
// are said together if Device is set. WrapUpUntilMS alone ends a wrap-up.
type AgentSaid struct {
	Presence      State    `json:"presence,omitempty"` // Available, Break, Offline or OtherState
	Activity      Activity `json:"activity,omitempty"`
	Reason        string   `json:"reason,omitempty"` // of Presence, or of the pause
	Device        Device   `json:"device,omitempty"`
	InCall        bool     `json:"in_call,omitempty"` // a call of the queue is connected
	Paused        bool     `json:"paused,omitempty"`
	PausedSince   int64    `json:"paused_since,omitempty"`     // Unix seconds
	WrapUpUntilMS int64    `json:"wrap_up_until_ms,omitempty"` // Unix milliseconds
	OtherID       string   `json:"other_id,omitempty"`         // by which the platform speaks of the agent too
}

// Append appends what was said as a JSON object.
func (a *AgentSaid) Append(dst []byte) []byte {
	dst = append(dst, '{')
	text := func(key, value string) {
		if value != "" {
			dst = AppendString(appendKey(dst, key), value)
		}
	}

	number := func(key string, n int64) {
		if n != 0 {
			dst = strconv.AppendInt(appendKey(dst, key), n, 10)
		}
	}

	flag := func(key string, set bool) {
		if set {
			dst = append(appendKey(dst, key), "true"...)
		}
	}

	text("presence", string(a.Presence))
	text("activity", string(a.Activity))
	text("reason", a.Reason)
	text("device", string(a.Device))
	flag("in_call", a.InCall)
	flag("paused", a.Paused)
	number("paused_since", a.PausedSince)
	number("wrap_up_until_ms", a.WrapUpUntilMS)
	text("other_id", a.OtherID)

	return append(dst, '}')
}

// appendKey appends the key of a member to an object that has been begun.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(append(append(dst, '"'), key...), `":`...)
}

// Check returns an error that names an id with a NUL character, which PostgreSQL does
// not store. Every other character is allowed.
func (f *Facts) Check() error {
	for _, id := range [...]struct{ field, value string }{
		{"agent_id", f.AgentID}, {"queue_id", f.QueueID}, {"call_id", f.CallID},
		{"interaction_id", f.InteractionID}, {"origination_call_id", f.OriginationCallID},
	} {
		if strings.IndexByte(id.value, 0) >= 0 {
			return fmt.Errorf("%s: holds a NUL character", id.field)
		}
	}
	return nil
}

// MaxDuration is the longest duration in facts and call records. A longer one is an
// error of the source, and would make sums useless or overflow them.
const MaxDuration = 366 * 24 * time.Hour

// Millis is a duration in milliseconds, from 0 to MaxDuration, that may be unknown.
type Millis struct {
	Value int64
	Known bool
}

// MillisOf returns a known duration, or an unknown one if ms is negative or above
// MaxDuration.
func MillisOf(ms int64) Millis {
	if ms < 0 || ms > MaxDuration.Milliseconds() {
		return Millis{}
	}
	return Millis{Value: ms, Known: true}
}

// MarshalJSON writes the milliseconds as a number.
func (m Millis) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, m.Value, 10), nil }

// UnmarshalJSON reads a number of milliseconds as MillisOf does.
func (m *Millis) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	*m = MillisOf(ms)
	return nil
}

// PlaceOf returns a place in a queue, 0 (unknown) for a number that is none.
func PlaceOf(n int64) int32 {
	const last = 1_000_000
	if n < 1 || n > last {
		return 0
	}
	return int32(n)
}

// Append appends the facts as a JSON object. An unset name becomes NameOther.
func (f *Facts) Append(dst []byte) []byte {
	name := f.Name
	if name == "" {
		name = NameOther
	}

	dst = append(dst, `{"name":`...)
	dst = AppendString(dst, string(name))
	text := func(key, value string) {
		if value != "" {
			dst = append(dst, key...)
			dst = AppendString(dst, value)
		}
	}

	number := func(key string, n int64, known bool) {
		if known {
			dst = append(dst, key...)
			dst = strconv.AppendInt(dst, n, 10)
		}
	}

	text(`,"agent_id":`, f.AgentID)
	text(`,"agent_name":`, f.AgentName)
	text(`,"queue_id":`, f.QueueID)
	text(`,"call_id":`, f.CallID)
	text(`,"interaction_id":`, f.InteractionID)
	text(`,"origination_call_id":`, f.OriginationCallID)
	text(`,"caller":`, f.Caller)
	text(`,"callee":`, f.Callee)
	text(`,"state":`, string(f.State))
	text(`,"reason":`, f.Reason)
	text(`,"previous_state":`, string(f.PreviousState))
	number(`,"previous_since":`, f.PreviousSince, f.PreviousSince != 0)
	number(`,"wait_ms":`, f.WaitMS.Value, f.WaitMS.Known)
	number(`,"talk_ms":`, f.TalkMS.Value, f.TalkMS.Known)
	number(`,"timestamp_ms":`, f.TimestampMS, f.TimestampMS != 0)
	text(`,"agent_state":`, string(f.AgentState))
	text(`,"contact":`, f.Contact)
	number(`,"position":`, int64(f.Position), f.Position != 0)

	if f.Agent != nil {
		dst = f.Agent.Append(append(dst, `,"agent":`...))
	}

	return append(dst, '}')
}

// AgentExtension returns the extension of an agent's id: FreeSWITCH's 1001@example.com,
// Asterisk's PJSIP/1001 and Local/1001@agents/n have 1001. Of an id without one it returns
// the id.
func AgentExtension(id string) string {
	_, device, ok := strings.Cut(id, "/")
	if ok {
		id = device
	}
	id, _, _ = strings.Cut(id, "@")
	id, _, _ = strings.Cut(id, "/")
	return id
}
