package pbx

import (
	"encoding/json"
	"maps"
	"time"

	"trunkline/event"
	"trunkline/telephony/sip"
)

// cdrBuilder collects the call record of one leg while the leg lasts. It is not safe
// for concurrent use.
type cdrBuilder struct {
	call       *call
	row        event.CDR
	user       sip.User // of the phone; the zero value for a trunk or a localcall.Destination
	startedAt  time.Time
	ringingAt  time.Time
	answeredAt time.Time
}

const (
	inbound  = "inbound"
	outbound = "outbound"
)

// clickToCall marks the destination's leg in call records (docs/calls.md). Its INVITE has the mark as a
// header with the prefix "X-", as FreeSWITCH writes custom headers.
const clickToCall = `{"` + event.SIPHeaderCallType + `":"` + event.CallTypeClickToCall + `"}`

// legNumbers are the numbers of a leg's two ends.
type legNumbers struct{ from, to string }

func (c *call) newCDR(callID, direction string, numbers legNumbers) *cdrBuilder {
	return &cdrBuilder{call: c, startedAt: time.Now(), row: event.CDR{
		AccountID: c.accountID, CallID: callID, InteractionID: c.interactionID, Direction: direction,
		From: numbers.from, To: numbers.to, CallerIDNumber: numbers.from, CalleeIDNumber: numbers.to,
		MediaServer: c.driver.config.MediaServer,
	}}
}

// setUser sets the user of the leg's phone.
func (b *cdrBuilder) setUser(user sip.User) {
	b.user, b.row.PresenceID = user, user.Extension
}

// setOriginationID marks a leg to the destination with the origination_call_id.
func (b *cdrBuilder) setOriginationID() { b.row.OriginationCallID = b.call.originationID() }

// setClickToCall marks the leg that a lookup of a click-to-call call returns.
func (b *cdrBuilder) setClickToCall() {
	if b.call.order != nil {
		b.row.CustomSIPHeaders = json.RawMessage(clickToCall)
	}
}

func (b *cdrBuilder) setRinging() {
	if b.ringingAt.IsZero() {
		b.ringingAt = time.Now()
	}
}

func (b *cdrBuilder) setAnswered() {
	b.answeredAt = time.Now()
	b.publishAgentEvent(event.AgentCallStart, b.answeredAt, nil)
}

// publish completes the record and queues it.
func (b *cdrBuilder) publish(cause sip.Cause) {
	now := time.Now()
	b.row.Timestamp, b.row.EndedTime, b.row.HangupCause = b.startedAt.Unix(), now.Unix(), string(cause)

	duration, billing, ringing := wholeSeconds(b.startedAt, now), int64(0), int64(0)
	if !b.answeredAt.IsZero() {
		b.row.AnsweredTime, billing = b.answeredAt.Unix(), wholeSeconds(b.answeredAt, now)
	}

	if !b.ringingAt.IsZero() {
		until := now
		if !b.answeredAt.IsZero() {
			until = b.answeredAt
		}
		ringing = wholeSeconds(b.ringingAt, until)
	}

	b.row.DurationSeconds, b.row.BillingSeconds, b.row.RingingSeconds = &duration, &billing, &ringing
	b.call.driver.outbox.putCDR(b.call.id, b.row)
	if !b.answeredAt.IsZero() {
		b.publishAgentEvent(event.AgentCallEnd, now,
			map[string]any{"hangup_cause": string(cause), "billing_seconds": billing})
	}
}

// wholeSeconds returns the difference of two times truncated to seconds.
func wholeSeconds(from, to time.Time) int64 { return max(to.Unix()-from.Unix(), 0) }

// publishAgentEvent queues an event if the leg is a user's. It has no agent_id: a user with a phone
// need not be an agent of the contact center.
func (b *cdrBuilder) publishAgentEvent(kind event.Type, at time.Time, extraFields map[string]any) {
	if b.user.UserID == "" {
		return
	}

	data := map[string]any{
		"call_id": b.row.CallID, "interaction_id": b.row.InteractionID, "user_id": b.user.UserID,
		"presence_id": b.user.Extension, "direction": b.row.Direction, "from": b.row.From, "to": b.row.To,
	}
	id := b.call.originationID()
	if id != "" {
		data["origination_call_id"] = id
	}

	maps.Copy(data, extraFields)
	b.call.driver.outbox.putEvent(b.call.id, b.row.AccountID, string(kind), at, data)
}
