package aisession_test

import (
	"strings"
	"testing"

	"trunkline/aisession"
)

func TestAHangupKeepsItsCause(t *testing.T) {
	for name, want := range map[string]string{
		"NORMAL_CLEARING": "NORMAL_CLEARING", "USER_BUSY": "USER_BUSY", "NO_ANSWER": "NO_ANSWER",
		"CALL_REJECTED":     "CALL_REJECTED",
		"ORIGINATOR_CANCEL": "ORIGINATOR_CANCEL", "NO_USER_RESPONSE": "NO_ANSWER", "USER_CHALLENGE": "CALL_REJECTED",
		"LOSE_RACE":                "ORIGINATOR_CANCEL",
		"NORMAL_TEMPORARY_FAILURE": "NORMAL_TEMPORARY_FAILURE", "MEDIA_TIMEOUT": "MEDIA_TIMEOUT",
		"SUBSCRIBER_ABSENT":   "SUBSCRIBER_ABSENT",
		"USER_NOT_REGISTERED": "SUBSCRIBER_ABSENT",
		"":                    "NORMAL_CLEARING", "no cause": "NORMAL_CLEARING", "A\"B": "NORMAL_CLEARING",
		strings.Repeat("A", 65): "NORMAL_CLEARING",
	} {
		if got := aisession.NormalizeHangupCause(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
