package aisession

import (
	"regexp"

	"trunkline/internal/aiprotocol"
)

var causePattern = regexp.MustCompile(`^[A-Z0-9_]{1,64}$`)

// NormalizeHangupCause returns the hangup.reason of a call's end. It normalizes other switches' cause names to
// NO_ANSWER, CALL_REJECTED, ORIGINATOR_CANCEL and SUBSCRIBER_ABSENT, and leaves other causes unchanged.
// It returns NORMAL_CLEARING for a name that is not a cause.
func NormalizeHangupCause(name string) string {
	switch name {
	case "NO_USER_RESPONSE", "ALLOTTED_TIMEOUT", "PROGRESS_TIMEOUT":
		return aiprotocol.NoAnswer
	case "USER_CHALLENGE", "CALL_REJECTED_BY_USER", "OUTGOING_CALL_BARRED", "INCOMING_CALL_BARRED":
		return aiprotocol.CallRejected
	case "LOSE_RACE", "PICKED_OFF", "ORIGINATOR_CANCELLED":
		return aiprotocol.OriginatorCancel
	case "USER_NOT_REGISTERED":
		return "SUBSCRIBER_ABSENT"
	}

	if !causePattern.MatchString(name) {
		return aiprotocol.NormalClearing
	}

	return name
}
