package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Call is what a recording knows of its call. "" and 0 are unknown.
type Call struct {
	CallID            string `json:"call_id,omitempty"` // of the leg that was recorded
	InteractionID     string `json:"interaction_id,omitempty"`
	OriginationCallID string `json:"origination_call_id,omitempty"`
	AgentID           string `json:"agent_id,omitempty"`
	QueueID           string `json:"queue_id,omitempty"`
	Direction         string `json:"direction,omitempty"`
	StartedAt         int64  `json:"started_at,omitempty"` // Unix seconds
	DurationMS        int64  `json:"duration_ms,omitempty"`
	Channels          int64  `json:"channels,omitempty"`
}

// Pause is a part of a recording that was not recorded: it is silence of its length.
type Pause struct {
	StartMS int64 `json:"start_ms"` // since the recording's start
	EndMS   int64 `json:"end_ms"`
}

// callField is a field of Call as a parameter of an upload: a text or a number.
type callField struct {
	name string // of the parameter

	text     func(*Call) *string // the field in a Call; nil for a number
	maxBytes int                 // of the text

	number   func(*Call) *int64 // the field in a Call; nil for a text
	maxValue int64              // of the number; the least is 1
}

// maxChannels is the largest number of channels of a recording.
const maxChannels = 64

// callFields are the fields of Call, in its order.
var callFields = []callField{
	{name: "call_id", text: func(c *Call) *string { return &c.CallID }, maxBytes: event.MaxCDRID},
	{name: "interaction_id", text: func(c *Call) *string { return &c.InteractionID }, maxBytes: event.MaxCDRID},
	{name: "origination_call_id", text: func(c *Call) *string { return &c.OriginationCallID },
		maxBytes: event.MaxCDRID},
	{name: "agent_id", text: func(c *Call) *string { return &c.AgentID }, maxBytes: event.MaxCDRID},
	{name: "queue_id", text: func(c *Call) *string { return &c.QueueID }, maxBytes: event.MaxCDRID},
	{name: "direction", text: func(c *Call) *string { return &c.Direction }, maxBytes: event.MaxCDRID},
	{name: "started_at", number: func(c *Call) *int64 { return &c.StartedAt }, maxValue: report.EndOfTime},
	{name: "duration_ms", number: func(c *Call) *int64 { return &c.DurationMS },
		maxValue: event.MaxDuration.Milliseconds()},
	{name: "channels", number: func(c *Call) *int64 { return &c.Channels }, maxValue: maxChannels},
}

// CallParams returns the names of the parameters that ParseCall reads.
func CallParams() []string {
	names := make([]string, len(callFields))
	for i, f := range callFields {
		names[i] = f.name
	}
	return names
}

// header returns the header of an upload that has the field: X-Recording-Call-Id.
func (f *callField) header() string {
	return http.CanonicalHeaderKey("X-Recording-" + strings.ReplaceAll(f.name, "_", "-"))
}

// ParseCall reads the call of an upload from its query, or from the headers X-Recording-*. Its
// error (fault.KindInvalid) names every invalid field. A field that has both is invalid unless
// they are equal.
func ParseCall(query url.Values, header http.Header) (Call, error) {
	var call Call
	var faults []fault.Field
	for i := range callFields {
		f := &callFields[i]
		given := append(append([]string(nil), query[f.name]...), header.Values(f.header())...)
		if len(given) == 0 {
			continue
		}

		code, message := f.set(&call, given)
		if code != "" {
			faults = append(faults, fault.Field{Field: f.name, Code: code, Message: f.name + " " + message})
		}
	}

	if len(faults) > 0 {
		return Call{}, fault.Invalid("Invalid call of the recording", faults...)
	}

	return call, nil
}

// set sets the field to the given values, which must be equal. It returns the code and message
// of a fault, "" if there is none.
func (f *callField) set(call *Call, given []string) (code, message string) {
	text := given[0]
	for _, other := range given[1:] {
		if other != text {
			return "invalid", "is given more than once, with different values"
		}
	}

	if text == "" {
		return "required", "must not be empty"
	}
	if f.text != nil {
		return f.setText(call, text)
	}

	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "wrong_type", "must be a whole number"
	}

	if n < 1 || n > f.maxValue {
		return "out_of_range", fmt.Sprintf("must be from 1 to %d", f.maxValue)
	}

	*f.number(call) = n
	return "", ""
}

func (f *callField) setText(call *Call, text string) (code, message string) {
	switch {
	case len(text) > f.maxBytes:
		return "too_long", fmt.Sprintf("must be at most %d bytes", f.maxBytes)
	case !report.Storable(text):
		return "invalid", "must be UTF-8 text"
	}
	*f.text(call) = text
	return "", ""
}

// isComplete reports whether a call's record has nothing to add. Not every call has an
// originator, an agent or a queue, so a call that lacks them is never complete.
func (c *Call) isComplete() bool {
	// Without an id of the call there is no record to look for.
	return c.CallID == "" && c.OriginationCallID == "" ||
		c.CallID != "" && c.InteractionID != "" && c.OriginationCallID != "" &&
			c.AgentID != "" && c.QueueID != "" && c.Direction != "" && c.StartedAt != 0 && c.DurationMS != 0
}

// complete fills the missing fields from the call's record.
func (c *Call) complete(record *event.CDR) {
	for _, f := range []struct{ missing, found *string }{
		{&c.CallID, &record.CallID}, {&c.InteractionID, &record.InteractionID},
		{&c.OriginationCallID, &record.OriginationCallID},
		{&c.AgentID, &record.AgentID}, {&c.QueueID, &record.QueueID}, {&c.Direction, &record.Direction},
	} {
		*f.missing = cmp.Or(*f.missing, *f.found)
	}

	c.StartedAt = cmp.Or(c.StartedAt, record.AnsweredTime, record.Timestamp)
	if record.BillingSeconds != nil {
		c.DurationMS = cmp.Or(c.DurationMS, *record.BillingSeconds*1000)
	}
}

// pauses is a list of pauses in a column: a JSON array, "" for none.
type pauses []Pause

func (p pauses) text() (string, error) {
	if len(p) == 0 {
		return "", nil
	}
	text, err := json.Marshal([]Pause(p))
	return string(text), err
}

func parsePauses(text string) (list []Pause, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &list)
	return list, err
}
