package freeswitch

import (
	"strings"

	"trunkline/origination"
)

// FreeSWITCH's names of Q.850 causes, as in hangup_cause.
const (
	causeNormal            = "NORMAL_CLEARING"
	causeAnsweredElsewhere = "LOSE_RACE"        // of a leg: another phone of the owner was answered first
	causeAnswerTimeout     = "ALLOTTED_TIMEOUT" // of the destination's leg: bridge_answer_timeout
	causeNoAnswer          = "NO_ANSWER"
)

// cleanCause returns text if it has the form of a cause name, else origination.CauseLost, because causes are
// stored and shown.
func cleanCause(text string) string {
	if text == "" || len(text) > 64 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return origination.CauseLost
	}
	return text
}

// ownerCause returns the cause of the call's end from the hangup cause of the owner's leg and its
// originate_disposition. A leg whose destination did not answer ends with NORMAL_CLEARING; the
// disposition then has the destination's cause. If the owner hangs up while the destination is being
// dialled, the disposition is "failure" and, after the destination's leg has ended, ORIGINATOR_CANCEL.
func ownerCause(hangup, disposition string) string {
	if hangup != causeNormal {
		return cleanCause(hangup)
	}

	switch disposition {
	case "", "SUCCESS":
		return causeNormal
	case "failure":
		return origination.CauseCancelled
	}

	return cleanCause(disposition)
}
