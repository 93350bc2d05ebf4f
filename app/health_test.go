package app

import (
	"testing"
)

func TestReadiness(t *testing.T) {
	h := &health{}
	origination := false
	h.addReadyPart("origination", func() bool { return origination })

	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "starting"}, {func() { h.setWaiting("the database") }, "waiting for the database"},
		{func() { h.setWaiting("kafka") }, "waiting for kafka"}, {h.setStarted, "starting: origination"},
		{func() { origination = true }, ""}, {h.setDraining, "draining"},
	} {
		step.do()
		if got := h.unreadyReason(); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}
