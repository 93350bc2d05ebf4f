package pbx

import (
	"encoding/json"
	"time"

	"trunkline/event"
	"trunkline/telephony/sip"
)

// ticket is the record of one leg while the leg lasts. One goroutine has it at
// a time.
type ticket struct {
	call     *call
	row      event.CDR
	user     sip.User // whose phone it is; the zero value for a trunk's or a session's
	began    time.Time
	rang     time.Time
	answered time.Time
}

const (
	inbound  = "inbound"
	outbound = "outbound"
)

// What the specification marks the destination's leg with: a header that its
// INVITE has with "X-" before it, as FreeSWITCH writes custom headers.
const (
	callTypeHeader = "svc_call_type"
	callTypeValue  = "clicktocall"
	clickToCall    = `{"` + callTypeHeader + `":"` + callTypeValue + `"}`
)

// parties is who a leg is between, as numbers.
type parties struct{ from, to string }

func (c *call) ticket(callID, direction string, p parties) *ticket {
	return &ticket{call: c, began: time.Now(), row: event.CDR{
		AccountID: c.accountID, CallID: callID, InteractionID: c.interactionID, Direction: direction,
		From: p.from, To: p.to, CallerIDNumber: p.from, CalleeIDNumber: p.to, MediaServer: c.driver.config.MediaServer,
	}}
}

// owner says whose phone the leg is.
func (t *ticket) owner(user sip.User) {
	t.user, t.row.PresenceID = user, user.Extension
}

// originated says that the leg is the call's way to its destination.
func (t *ticket) originated() { t.row.OriginationCallID = t.call.originationID() }

// shown says that the leg is the one to be shown for a click to call.
func (t *ticket) shown() {
	if t.call.order != nil {
		t.row.CustomSIPHeaders = json.RawMessage(clickToCall)
	}
}

func (t *ticket) ringing() {
	if t.rang.IsZero() {
		t.rang = time.Now()
	}
}

func (t *ticket) answer() {
	t.answered = time.Now()
	t.agent(event.AgentCallStart, t.answered, nil)
}

// end writes the record.
func (t *ticket) end(cause sip.Cause) {
	now := time.Now()
	t.row.Timestamp, t.row.EndedTime, t.row.HangupCause = t.began.Unix(), now.Unix(), string(cause)
	duration, billing, ringing := whole(t.began, now), int64(0), int64(0)
	if !t.answered.IsZero() {
		t.row.AnsweredTime, billing = t.answered.Unix(), whole(t.answered, now)
	}
	if !t.rang.IsZero() {
		until := now
		if !t.answered.IsZero() {
			until = t.answered
		}
		ringing = whole(t.rang, until)
	}
	t.row.DurationSeconds, t.row.BillingSeconds, t.row.RingingSeconds = &duration, &billing, &ringing
	t.call.driver.outbox.cdr(t.call.id, t.row)
	if !t.answered.IsZero() {
		t.agent(event.AgentCallEnd, now, map[string]any{"hangup_cause": string(cause), "billing_seconds": billing})
	}
}

// whole is the seconds from one clock reading to another, as the two readings
// in whole seconds differ.
func whole(from, to time.Time) int64 { return max(to.Unix()-from.Unix(), 0) }

// agent publishes an event when the leg is a user's. It names no agent_id:
// whoever has a phone need not be an agent, whose state is the contact center's
// to say.
func (t *ticket) agent(kind event.Type, at time.Time, more map[string]any) {
	if t.user.UserID == "" {
		return
	}
	data := map[string]any{
		"call_id": t.row.CallID, "interaction_id": t.row.InteractionID, "user_id": t.user.UserID,
		"presence_id": t.user.Extension, "direction": t.row.Direction, "from": t.row.From, "to": t.row.To,
	}
	if id := t.call.originationID(); id != "" {
		data["origination_call_id"] = id
	}
	for name, value := range more {
		data[name] = value
	}
	t.call.driver.outbox.event(t.call.id, t.row.AccountID, string(kind), at, data)
}
