package event

import "encoding/json"

// CDR is one call record, one leg of a call: the value of a cdr record and the
// row of every report (contract, section B). Times are Unix seconds. What is
// unknown is absent, never null: "" and, of the clocks, 0 are unknown.
type CDR struct {
	ID                string          `json:"id"` // the source's, else YYYYMM of timestamp (UTC), "-", call id
	AccountID         string          `json:"account_id"`
	CallID            string          `json:"call_id"`
	InteractionID     string          `json:"interaction_id"`
	OriginationCallID string          `json:"origination_call_id,omitempty"`
	Direction         string          `json:"direction,omitempty"`
	From              string          `json:"from,omitempty"`
	To                string          `json:"to,omitempty"`
	CallerIDName      string          `json:"caller_id_name,omitempty"`
	CallerIDNumber    string          `json:"caller_id_number,omitempty"`
	CalleeIDName      string          `json:"callee_id_name,omitempty"`
	CalleeIDNumber    string          `json:"callee_id_number,omitempty"`
	Timestamp         int64           `json:"timestamp"`               // start
	AnsweredTime      int64           `json:"answered_time,omitempty"` // 0: never answered, or unknown
	EndedTime         int64           `json:"ended_time,omitempty"`
	DurationSeconds   *int64          `json:"duration_seconds,omitempty"`
	BillingSeconds    *int64          `json:"billing_seconds,omitempty"`
	RingingSeconds    *int64          `json:"ringing_seconds,omitempty"`
	HangupCause       string          `json:"hangup_cause,omitempty"`
	PresenceID        string          `json:"presence_id,omitempty"`
	OtherLegCallID    string          `json:"other_leg_call_id,omitempty"`
	CustomSIPHeaders  json.RawMessage `json:"custom_sip_headers,omitempty"`  // an object
	CustomChannelVars json.RawMessage `json:"custom_channel_vars,omitempty"` // an object
	RecordingID       string          `json:"recording_id,omitempty"`
	MediaServer       string          `json:"media_server,omitempty"`
}
