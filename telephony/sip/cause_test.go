package sip

import "testing"

func TestCauses(t *testing.T) {
	statuses := map[int]Cause{
		486: UserBusy, 600: UserBusy, 480: SubscriberAbsent, 404: UnallocatedNumber, 603: CallRejected,
		403: CallRejected,
		408: RecoveryOnTimerExpire, 487: OriginatorCancel, 488: IncompatibleDestination, 500: NormalTemporaryFailure,
		503: NormalTemporaryFailure, 599: NormalTemporaryFailure, 200: NormalClearing, 499: Interworking,
		302: NumberChanged, 699: CallRejected,
	}

	for status, want := range statuses {
		if got := CauseOfStatus(status); got != want {
			t.Errorf("%d is %s, want %s", status, got, want)
		}
	}

	reasons := map[string]Cause{
		`Q.850;cause=17;text="User busy"`:               UserBusy,
		`q.850 ;cause=20`:                               SubscriberAbsent,
		`Q.850;cause=16;text="ORIGINATOR_CANCEL"`:       OriginatorCancel,
		`SIP;cause=200;text="Call completed elsewhere"`: NormalClearing,
		`Q.850;cause=99999`:                             NormalClearing,
		`Q.850;cause=31`:                                "NORMAL_UNSPECIFIED",
		`Q.850;cause=34;text="Circuit busy"`:            "NORMAL_CIRCUIT_CONGESTION",
		`Q.850;cause=38`:                                "NETWORK_OUT_OF_ORDER",
		`Q.850;cause=3`:                                 "NO_ROUTE_DESTINATION",
		`Q.850;cause=63`:                                "SERVICE_UNAVAILABLE",
		`Q.850;cause=16;text="MEDIA_TIMEOUT"`:           "MEDIA_TIMEOUT",
		`Q.850;cause=26`:                                NormalClearing,
		"":                                              NormalClearing,
		`Q.850;cause=17;text="NO_SUCH_NAME"`:            UserBusy,
	}

	for value, want := range reasons {
		if got := causeOfReason(value); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}

	for cause := range q850Numbers {
		if got := causeOfReason(cause.reasonHeader()); got != cause {
			t.Errorf("%s came back as %s", cause, got)
		}
	}
}

func FuzzReason(f *testing.F) {
	f.Add(`Q.850;cause=17;text="USER_BUSY"`)
	f.Fuzz(func(t *testing.T, value string) {
		if _, known := q850Numbers[causeOfReason(value)]; !known {
			t.Errorf("%q is a cause that is none", value)
		}
	})
}
