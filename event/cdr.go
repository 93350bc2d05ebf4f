package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"
)

// CDR is one call record of one leg of a call: the value of a cdr record and the row
// of every report. Times are Unix seconds. Unknown fields are absent, never null; ""
// and, for times, 0 mean unknown.
//
// It is the only definition of the row's fields. Name and order are those of the JSON
// tags; the Go type is the kind; max bounds a text in bytes (255 for indexed ids); a
// field without omitempty is required. CDRFields returns the same as data, from which
// the svc.cdr format, the checks, the index's columns and the CSV header are derived;
// the JSON schema, OpenAPI and the database are tested against it. To add a field, add
// it here, a column in a cdrindex migration, and a description in api/.
type CDR struct {
	// the source's, or else YYYYMM of timestamp (UTC), "-", call id
	ID                string          `json:"id" max:"1024"`
	AccountID         string          `json:"account_id" max:"255"`
	CallID            string          `json:"call_id" max:"255"`
	InteractionID     string          `json:"interaction_id" max:"255"`
	OriginationCallID string          `json:"origination_call_id,omitempty" max:"255"`
	Direction         string          `json:"direction,omitempty" max:"1024"`
	From              string          `json:"from,omitempty" max:"1024"` // the caller's number when the leg began
	To                string          `json:"to,omitempty" max:"1024"`   // the number dialled on this leg
	CallerIDName      string          `json:"caller_id_name,omitempty" max:"1024"`
	CallerIDNumber    string          `json:"caller_id_number,omitempty" max:"1024"`
	CalleeIDName      string          `json:"callee_id_name,omitempty" max:"1024"`
	CalleeIDNumber    string          `json:"callee_id_number,omitempty" max:"1024"`
	Timestamp         int64           `json:"timestamp"`               // start
	AnsweredTime      int64           `json:"answered_time,omitempty"` // 0: never answered, or unknown
	EndedTime         int64           `json:"ended_time,omitempty"`
	DurationSeconds   *int64          `json:"duration_seconds,omitempty"`
	BillingSeconds    *int64          `json:"billing_seconds,omitempty"`
	RingingSeconds    *int64          `json:"ringing_seconds,omitempty"`
	HangupCause       string          `json:"hangup_cause,omitempty" max:"1024"`
	PresenceID        string          `json:"presence_id,omitempty" max:"255"` // the user or phone whose leg it is
	OtherLegCallID    string          `json:"other_leg_call_id,omitempty" max:"255"`
	CustomSIPHeaders  json.RawMessage `json:"custom_sip_headers,omitempty"`  // an object
	CustomChannelVars json.RawMessage `json:"custom_channel_vars,omitempty"` // an object
	RecordingID       string          `json:"recording_id,omitempty" max:"255"`
	MediaServer       string          `json:"media_server,omitempty" max:"1024"`
	QueueID           string          `json:"queue_id,omitempty" max:"255"` // the queue that the call waited in
	// the agent who answered, or whose leg this is
	AgentID string `json:"agent_id,omitempty" max:"255"`
}

// Maximum lengths of a row's texts, in bytes.
const (
	MaxCDRID   = 255
	MaxCDRText = 1024
)

// Members of CustomSIPHeaders and CustomChannelVars that readers of call records interpret
// (docs/calls.md).
const (
	SIPHeaderCallType     = "svc_call_type" // in CustomSIPHeaders
	CallTypeClickToCall   = "clicktocall"   // value of SIPHeaderCallType: the leg to the destination
	ChannelVarLoopbackLeg = "loopback_leg"  // in CustomChannelVars: "A" or "B", the side of a loopback
	ChannelVarDisposition = "disposition"   // in CustomChannelVars: Asterisk's own word for HangupCause
)

// PartID returns the call id of one of several records of a leg: the leg's with a number behind it.
func PartID(leg, number string) string { return leg + "-" + number }

// LegOfPart returns the leg's call id in one of PartID; "" if the call id cannot be one.
func LegOfPart(callID string) string {
	leg := strings.TrimRight(callID, "0123456789")
	if leg == callID || !strings.HasSuffix(leg, "-") {
		return ""
	}
	return leg[:len(leg)-1]
}

// GregorianEpoch is the Unix epoch in seconds since year 0, the calendar of Erlang and Kazoo.
const GregorianEpoch = 62_167_219_200

// CDRKind is the type of a field of a CDR.
type CDRKind int

// The kinds, with the Go type of their fields.
const (
	CDRText    CDRKind = iota // string
	CDRTime                   // int64, Unix seconds
	CDRSeconds                // *int64, a duration, at most MaxDuration
	CDRObject                 // json.RawMessage, a JSON object
)

// CDRField describes one field of a CDR.
type CDRField struct {
	Name     string // in JSON, CSV and the reports
	Kind     CDRKind
	Max      int // of a CDRText, in bytes
	Required bool

	offset uintptr // in CDR
}

// CDRFields returns the fields of a CDR, in order. The slice is shared: do not modify
// it.
func CDRFields() []CDRField { return fieldTable }

var fieldTable = func() []CDRField {
	row := reflect.TypeFor[CDR]()
	kinds := map[reflect.Type]CDRKind{
		reflect.TypeFor[string](): CDRText, reflect.TypeFor[int64](): CDRTime,
		reflect.TypeFor[*int64](): CDRSeconds, reflect.TypeFor[json.RawMessage](): CDRObject,
	}
	var all []CDRField
	for i := range row.NumField() {
		tag := row.Field(i).Tag
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		limit, _ := strconv.Atoi(tag.Get("max")) // a test checks that every text has one
		all = append(all, CDRField{
			Name: name, Kind: kinds[row.Field(i).Type], Max: limit, Required: options != "omitempty",
			offset: row.Field(i).Offset,
		})
	}
	return all
}()

// Text returns a pointer to a CDRText field of r.
func (f *CDRField) Text(r *CDR) *string { return (*string)(f.of(r, CDRText)) }

// Time returns a pointer to a CDRTime field of r.
func (f *CDRField) Time(r *CDR) *int64 { return (*int64)(f.of(r, CDRTime)) }

// Seconds returns a pointer to a CDRSeconds field of r.
func (f *CDRField) Seconds(r *CDR) **int64 { return (**int64)(f.of(r, CDRSeconds)) }

// Object returns a pointer to a CDRObject field of r.
func (f *CDRField) Object(r *CDR) *json.RawMessage { return (*json.RawMessage)(f.of(r, CDRObject)) }

// of returns a pointer to the field, as fast as a selector; reflect would take ten
// times as long. kind and offset come from the same struct field, so the pointer has
// its type.
func (f *CDRField) of(r *CDR, kind CDRKind) unsafe.Pointer {
	if f.Kind != kind {
		panic("event: field " + f.Name + " is of another kind")
	}
	return unsafe.Add(unsafe.Pointer(r), f.offset)
}

// CDRError names a field of a row that cannot be stored, and the reason.
type CDRError struct{ Field, Reason string }

func (e *CDRError) Error() string { return e.Field + ": " + e.Reason }

// Check returns a *CDRError for a row that readers cannot store or find again.
func (r *CDR) Check() error {
	for i := range fieldTable {
		f := &fieldTable[i]
		switch f.Kind {
		case CDRText:
			text := *f.Text(r)
			switch {
			case text == "" && f.Required:
				return &CDRError{f.Name, "missing"}
			case len(text) > f.Max:
				return &CDRError{f.Name, fmt.Sprintf("longer than %d bytes", f.Max)}
			case strings.IndexByte(text, 0) >= 0:
				return &CDRError{f.Name, "holds a NUL character"} // PostgreSQL's text accepts every other character
			}
		case CDRObject:
			object := *f.Object(r)
			switch {
			case object == nil:
			case len(object) == 0 || object[0] != '{' || !utf8.Valid(object):
				return &CDRError{f.Name, "want an object"}
			case hasNUL(object):
				return &CDRError{f.Name, "holds a NUL character"}
			}
		case CDRSeconds:
			d := *f.Seconds(r)
			if d != nil && (*d < 0 || *d > int64(MaxDuration/time.Second)) {
				return &CDRError{f.Name, fmt.Sprintf("not between 0 s and %.0f s", MaxDuration.Seconds())}
			}
		case CDRTime:
		}
	}

	return nil
}
