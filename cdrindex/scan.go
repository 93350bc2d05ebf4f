package cdrindex

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/event"
)

// scanRow reads a row in the plain form that the normalizer writes: an object
// without spaces, of the row's own fields, whose texts need no escapes. It
// answers false for anything else, which is left to encoding/json; for what it
// takes, it reads the same. Reading is a quarter of the work of indexing.
func scanRow(value []byte, row *event.CDR) bool {
	rest, ok := strings.CutPrefix(string(value), "{") // the row's texts share this copy
	for ok {
		var name string
		if name, rest, ok = cutText(rest); !ok {
			return false
		}
		if rest, ok = strings.CutPrefix(rest, ":"); !ok {
			return false
		}
		if rest, ok = scanField(row, name, rest); !ok {
			return false
		}
		if rest == "}" {
			return true
		}
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return false
}

// scanField reads the value of a field and gives what follows it.
func scanField(row *event.CDR, name, text string) (rest string, ok bool) {
	if to := textField(row, name); to != nil {
		*to, rest, ok = cutText(text)
		return rest, ok
	}
	number, length, object := otherField(row, name)
	switch {
	case number != nil:
		*number, rest, ok = cutNumber(text)
	case length != nil:
		n := new(int64)
		*n, rest, ok = cutNumber(text)
		*length = n
	case object != nil:
		*object, rest, ok = cutObject(text)
	}
	return rest, ok
}

func textField(r *event.CDR, name string) *string {
	switch name {
	case "id":
		return &r.ID
	case "account_id":
		return &r.AccountID
	case "call_id":
		return &r.CallID
	case "interaction_id":
		return &r.InteractionID
	case "origination_call_id":
		return &r.OriginationCallID
	case "direction":
		return &r.Direction
	case "from":
		return &r.From
	case "to":
		return &r.To
	case "caller_id_name":
		return &r.CallerIDName
	case "caller_id_number":
		return &r.CallerIDNumber
	case "callee_id_name":
		return &r.CalleeIDName
	case "callee_id_number":
		return &r.CalleeIDNumber
	case "hangup_cause":
		return &r.HangupCause
	case "presence_id":
		return &r.PresenceID
	case "other_leg_call_id":
		return &r.OtherLegCallID
	case "recording_id":
		return &r.RecordingID
	case "media_server":
		return &r.MediaServer
	}
	return nil
}

func otherField(r *event.CDR, name string) (number *int64, length **int64, object *json.RawMessage) {
	switch name {
	case "timestamp":
		number = &r.Timestamp
	case "answered_time":
		number = &r.AnsweredTime
	case "ended_time":
		number = &r.EndedTime
	case "duration_seconds":
		length = &r.DurationSeconds
	case "billing_seconds":
		length = &r.BillingSeconds
	case "ringing_seconds":
		length = &r.RingingSeconds
	case "custom_sip_headers":
		object = &r.CustomSIPHeaders
	case "custom_channel_vars":
		object = &r.CustomChannelVars
	}
	return number, length, object
}

// cutText cuts a string without escapes off the front.
func cutText(text string) (s, rest string, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return "", "", false
	}
	s, rest, ok = strings.Cut(text[1:], `"`)
	ascii := true
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == '\\' {
			return "", "", false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return s, rest, ok && (ascii || utf8.ValidString(s))
}

// cutNumber cuts a whole number off the front.
func cutNumber(text string) (n int64, rest string, ok bool) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == 0 || end == len(text) || end > 1 && text[0] == '0' || text[end] != ',' && text[end] != '}' {
		return 0, "", false
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	return n, text[end:], err == nil
}

// cutObject cuts an object off the front.
func cutObject(text string) (object json.RawMessage, rest string, ok bool) {
	if len(text) == 0 || text[0] != '{' {
		return nil, "", false
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth == 0 {
			object = json.RawMessage(text[:i+1])
			return object, text[i+1:], json.Valid(object)
		}
	}
	return nil, "", false
}
