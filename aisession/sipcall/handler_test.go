package sipcall

import (
	"context"
	"errors"
	"testing"

	"trunkline/internal/fault"
	"trunkline/telephony/sip"
)

func TestTheAssertedIdentityIsANumber(t *testing.T) {
	for header, want := range map[string]string{
		`"Bob" <sip:+4930123@example.com;user=phone>`: "+4930123",
		`<sips:+4930123;cpc=ordinary@example.com>`:    "+4930123",
		`<tel:+4930123;ext=5>`:                        "+4930123",
		`tel:+4930123`:                                "+4930123",
		`sip:1001@pbx`:                                "1001",
		``:                                            "",
		`<sip:example.com>`:                           "",
		`<mailto:bob@example.com>`:                    "",
		`nonsense`:                                    "",
	} {
		if got := headerUser(header); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}

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
