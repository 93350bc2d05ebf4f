package simulator

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"trunkline/event"
	"trunkline/origination"
)

// The legs of a call: the owner's phone, the loopback leg that dials, and the destination's.
const (
	legOwner       = "owner"
	legLoopback    = "loopback"
	legDestination = "destination"
)

// legNamespace is the UUID namespace of leg ids, which are derived from the call's id so that a record created
// again after a crash is the same record.
var legNamespace = uuid.MustParse("6f1a1b52-2c0e-4a2b-9d43-1c2f6f6f3c11")

func (c *call) leg(name string) string {
	return uuid.NewSHA1(legNamespace, []byte(c.id+"/"+name)).String()
}

// rows returns the records of the call's legs.
func (c *call) rows(cause string) []event.CDR {
	owner := c.row(legOwner, c.begunAt, c.reachedAt[origination.UserAnswered], cause)
	owner.Direction, owner.From, owner.To = "outbound", c.Destination, c.Extension
	owner.CallerIDNumber, owner.CalleeIDNumber = c.Destination, c.Extension
	owner.PresenceID, owner.OtherLegCallID = c.Extension, c.leg(legLoopback)

	loopback := c.row(legLoopback, c.begunAt, c.reachedAt[origination.UserAnswered], cause)
	loopback.Direction, loopback.From, loopback.To = "inbound", c.Extension, c.Destination
	loopback.OriginationCallID, loopback.OtherLegCallID = c.id, c.leg(legOwner)
	loopback.CustomChannelVars = json.RawMessage(`{"` + event.ChannelVarLoopbackLeg + `":"B"}`)
	dialled, ok := c.reachedAt[origination.Dialling]
	if !ok {
		return []event.CDR{owner, loopback}
	}

	destination := c.row(legDestination, dialled, c.reachedAt[origination.Bridged], cause)
	destination.Direction, destination.From, destination.To = "outbound", c.Extension, c.Destination
	destination.CallerIDNumber, destination.CalleeIDNumber = c.Extension, c.Destination
	destination.OriginationCallID, destination.OtherLegCallID = c.id, c.leg(legLoopback)
	destination.CustomSIPHeaders = json.RawMessage(`{"` + event.SIPHeaderCallType + `":"` + event.CallTypeClickToCall +
		`"}`)

	return []event.CDR{owner, loopback, destination}
}

func (c *call) row(leg string, begun, answered time.Time, cause string) event.CDR {
	start, end := begun.Unix(), c.reachedAt[origination.Ended].Unix()
	duration := end - start
	row := event.CDR{
		AccountID: c.AccountID, CallID: c.leg(leg), InteractionID: c.InteractionID,
		Timestamp: start, EndedTime: end, DurationSeconds: &duration, HangupCause: cause, MediaServer: MediaServer,
	}

	var ringing, billing int64
	if answered.IsZero() {
		ringing = duration
	} else {
		row.AnsweredTime = answered.Unix()
		ringing, billing = row.AnsweredTime-start, end-row.AnsweredTime
	}

	row.RingingSeconds, row.BillingSeconds = &ringing, &billing
	return row
}

// channelEvent is an event of the owner's phone in the generic format.
type channelEvent struct {
	Type      event.Type  `json:"type"`
	AccountID string      `json:"account_id"`
	Timestamp int64       `json:"timestamp"`
	Data      channelData `json:"data"`
}

// channelData has the user but no agent_id: a user who places a call need not be an agent.
type channelData struct {
	UserID            string `json:"user_id"`
	PresenceID        string `json:"presence_id"`
	Destination       string `json:"destination"`
	CallID            string `json:"call_id"`
	InteractionID     string `json:"interaction_id"`
	OriginationCallID string `json:"origination_call_id"`
	HangupCause       string `json:"hangup_cause,omitempty"`
	MediaServer       string `json:"media_server"`
}

func (c *call) startedEvent() []byte {
	return c.event(event.AgentCallStart, origination.UserAnswered, "")
}

func (c *call) finishedEvent(cause string) []byte {
	return c.event(event.AgentCallEnd, origination.Ended, cause)
}

func (c *call) event(kind event.Type, at origination.State, cause string) []byte {
	data, _ := json.Marshal(channelEvent{kind, c.AccountID, c.reachedAt[at].Unix(), channelData{
		UserID: c.UserID, PresenceID: c.Extension, Destination: c.Destination, CallID: c.leg(legOwner),
		InteractionID: c.InteractionID, OriginationCallID: c.id, HangupCause: cause, MediaServer: MediaServer,
	}}) // strings and numbers always marshal
	return data
}
