package pbx_test

import (
	"context"
	"testing"

	"trunkline/origination"
	"trunkline/telephony/sip"
)

func TestCrashedCallsEnd(t *testing.T) {
	w := newTestEnv(t, nil, nil)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan origination.Progress, 1)
	go func() {
		_ = w.driver.Follow(ctx, []origination.OpenCall{{CallID: "old", State: origination.Bridged}},
			func(p origination.Progress) { ended <- p })
	}()

	if p := <-ended; p.CallID != "old" || p.State != origination.Ended ||
		p.Cause != string(sip.NormalTemporaryFailure) {
		t.Errorf("reported %+v", p)
	}
	cancel()
}
