package aisession_test

import (
	"context"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/internal/fault"
)

func TestADrainLetsSessionsFinish(t *testing.T) {
	t.Parallel() // it waits for most of DrainLimit
	p := startProvider(t, 160, nil)
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.DrainLimit = 4 * time.Second }), p)
	short, long := h.start(request(configOf(p, "g711_ulaw"), ulaw)), h.start(request(configOf(p, "g711_ulaw"), ulaw))
	one, two := p.nextConnection(), p.nextConnection()
	one.waitFor(t, "media", 3)
	h.stop()

	until(t, "the drain", func() bool {
		session, err := h.Open(context.Background(), request(configOf(p, "g711_ulaw"), ulaw))
		if err == nil {
			session.Close("")
			<-p.connections
		}
		return fault.KindOf(err) == fault.KindUnavailable
	})

	if e := short.end(t, ""); e.Reason != aisession.CallerHungUp {
		t.Errorf("the first ended: %+v", e)
	}
	if e := long.wait(t); e.Reason != aisession.Drained || e.Cause != "NORMAL_CLEARING" {
		t.Errorf("the second ended: %+v", e)
	}

	<-h.stopped
	one.waitHangup(t, "NORMAL_CLEARING")
	two.waitHangup(t, "NORMAL_CLEARING")

	if got := len(h.events.all()); got < 4 || got%2 != 0 {
		t.Errorf("%d events were published before the end", got)
	}
}
