package asterisk

import (
	"strings"

	"github.com/google/uuid"

	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// firstValue returns the value of a key, or the first value of a repeated key: a caller's
// number may contain line breaks, so further occurrences may be text of the caller.
func firstValue(v jsonscan.Value) jsonscan.Value {
	if v.Kind() == jsonscan.Array {
		return v.First()
	}
	return v
}

// text returns a value, or "" for the texts that Asterisk uses for unknown values.
func text(v jsonscan.Value) string {
	switch s := format.Text(firstValue(v)); s {
	case "<unknown>", "<null>", "<none>":
		return ""
	default:
		return s
	}
}

// extension returns the dialled extension, or "" for the dialplan's start extension.
func extension(v jsonscan.Value) string {
	s := text(v)
	if s != "s" {
		return s
	}
	return ""
}

// originationVariablePrefix is the name of the channel variable with the id of a click
// to call, and "=".
const originationVariablePrefix = "origination_call_id="

// ownerSuffix ends the unique id of the channel that rang the user of a click to
// call: package origination/asterisk makes it from the call's id, and Asterisk
// gives it to all channels of the call as their Linkedid.
const ownerSuffix = "-owner"

// originationIDOfLinkedID returns the id of the click to call that a Linkedid belongs to, or "".
func originationIDOfLinkedID(linkedID string) string {
	id, ok := strings.CutSuffix(linkedID, ownerSuffix)
	if !ok || len(id) != len(uuid.UUID{}.String()) || uuid.Validate(id) != nil {
		return ""
	}
	return id
}

// channelVariable returns the value of a channel variable in ChanVariable, which has one
// "name=value" for each variable that channelvars in manager.conf lists.
func channelVariable(v jsonscan.Value, prefix string) string {
	switch v.Kind() {
	case jsonscan.String:
		value, ok := strings.CutPrefix(format.Text(v), prefix)
		if ok {
			return value
		}
	case jsonscan.Array:
		for element := range v.Elements() {
			if value, ok := strings.CutPrefix(format.Text(element), prefix); ok {
				return value
			}
		}
	}

	return ""
}
