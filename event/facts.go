package event

import (
	"fmt"
	"strconv"
	"strings"
)

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
	Caller            string `json:"caller,omitempty"` // the caller's number
	Callee            string `json:"callee,omitempty"` // what was dialled
	State             State  `json:"state,omitempty"`  // after the event
	Reason            string `json:"reason,omitempty"` // in the source's own term, or ReasonResync or ReasonParked
	PreviousState     State  `json:"previous_state,omitempty"`
	PreviousSince     int64  `json:"previous_since,omitempty"` // Unix seconds
	WaitMS            Millis `json:"wait_ms,omitzero"`         // in the queue, to the answer or the end
	TalkMS            Millis `json:"talk_ms,omitzero"`         // from the answer to the end
	TimestampMS       int64  `json:"timestamp_ms,omitempty"`   // Unix milliseconds, the source's clock

	// of agent_id after an event about a call, or where State was not reported
	AgentState State        `json:"agent_state,omitempty"`
	Contact    string       `json:"contact,omitempty"`  // of a device: the registration that the event is about
	Position   int32        `json:"position,omitempty"` // of a call that enters a queue: its place there, from 1
	Agent      *AgentReport `json:"agent,omitempty"`    // what the platform reported of the agent, piece by piece
}

// AgentReport has the states that a platform reported for an agent, where it reports presence, activity and
// phone separately.
// State of the facts is then what follows from all that is known of the agent. From
// Device on, the fields are about its phone and its membership in the queue queue_id; they
// are reported together if Device is set. WrapUpUntilMS alone ends a wrap-up.
type AgentReport struct {
	Presence      State    `json:"presence,omitempty"` // Available, Break, Offline or OtherState
	Activity      Activity `json:"activity,omitempty"`
	Reason        string   `json:"reason,omitempty"` // of Presence, or of the pause
	Device        Device   `json:"device,omitempty"`
	InCall        bool     `json:"in_call,omitempty"` // a call of the queue is connected
	Paused        bool     `json:"paused,omitempty"`
	PausedSince   int64    `json:"paused_since,omitempty"`     // Unix seconds
	WrapUpUntilMS int64    `json:"wrap_up_until_ms,omitempty"` // Unix milliseconds
	OtherID       string   `json:"other_id,omitempty"`         // a second id of the agent, of app_agent_pool
}

// Append appends the report as a JSON object.
func (a *AgentReport) Append(dst []byte) []byte {
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

	number := func(key string, n int64, isSet bool) {
		if isSet {
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
