package freeswitch

import "strings"

// Causes are the switch's names of Q.850 causes, as in hangup_cause.
const (
	causeCancelled = "ORIGINATOR_CANCEL"
	causeNormal    = "NORMAL_CLEARING"
	causeUnknown   = "NORMAL_TEMPORARY_FAILURE"
	causeAbsent    = "SUBSCRIBER_ABSENT"
	causeLost      = "LOSE_RACE" // of a leg: another one was answered first
)

// cleanCause lets only names through: what is reported is stored and shown.
func cleanCause(text string) string {
	if text == "USER_NOT_REGISTERED" { // newer switches' name for an owner without a phone
		return causeAbsent
	}
	if text == "" || len(text) > 64 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return causeUnknown
	}
	return text
}

// ownerCause is why the owner's leg ended. A destination that did not answer
// leaves the leg to end normally; its originate_disposition knows better. That
// is "failure" while the destination is still being dialled: then the owner was
// the one to hang up.
func ownerCause(hangup, disposition string) string {
	if hangup != causeNormal {
		return cleanCause(hangup)
	}
	switch disposition {
	case "", "failure", "SUCCESS", causeCancelled:
		return causeNormal
	}
	return cleanCause(disposition)
}
