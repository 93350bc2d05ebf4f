package sipcall

import (
	"context"
	"errors"
	"testing"

	"trunkline/internal/fault"
	"trunkline/telephony/sip"
)

func TestHowARefusalIsSaid(t *testing.T) {
	for kind, want := range map[fault.Kind]sip.Cause{
		fault.KindNotFound: sip.UnallocatedNumber, fault.KindUnsupported: sip.IncompatibleDestination,
		fault.KindLimited: sip.SwitchCongestion, fault.KindRefused: sip.DestinationOutOfOrder,
		fault.KindUnavailable: sip.NormalTemporaryFailure, fault.KindInternal: sip.NormalTemporaryFailure,
	} {
		if got := rejectCause(fault.New(kind, "x")); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}

	if got := rejectCause(errors.Join(context.Canceled)); got != sip.NormalTemporaryFailure {
		t.Errorf("another error: %s", got)
	}
}
