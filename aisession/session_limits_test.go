package aisession_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/internal/fault"
)

func TestADrainLetsSessionsFinish(t *testing.T) {
	t.Parallel() // it waits for most of DrainLimit
	p := startProvider(t, 160, nil)
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.DrainLimit = 4 * time.Second }), p)
	short, long := h.start(request(account(p, "g711_ulaw"), ulaw)), h.start(request(account(p, "g711_ulaw"), ulaw))
	one, two := p.nextConnection(), p.nextConnection()
	one.waitFor(t, "media", 3)
	h.stop()

	until(t, "the drain", func() bool {
		session, err := h.Open(context.Background(), request(account(p, "g711_ulaw"), ulaw))
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

// Without settings an account has 100 sessions in the cluster, and a node 500. That the
// node's setting is kept to shows TestLimits.
func TestLimitsByDefault(t *testing.T) {
	if n := aisession.DefaultSettings().MaxSessions; n != 500 {
		t.Errorf("a node has %d sessions", n)
	}

	p := startProvider(t, 160, nil)
	p.connections = make(chan *fakeConnection, 100)
	h := startService(t, aisession.DefaultSettings(), p)
	var closing sync.WaitGroup
	defer closing.Wait()

	for i := range 100 {
		session, err := h.Open(t.Context(), request(account(p, "g711_ulaw"), ulaw))
		if err != nil {
			t.Fatalf("session %d: %v", i+1, err)
		}
		defer closing.Go(func() { session.Close("NO_ANSWER") })
	}

	if _, err := h.Open(t.Context(), request(account(p, "g711_ulaw"), ulaw)); fault.KindOf(err) != fault.KindLimited {
		t.Errorf("session 101 of the account: %v", err)
	}
	if n := h.metric("trunkline_aisession_refused_total", "reason", "account_limit"); n != 1 {
		t.Errorf("%v refusals are counted", n)
	}
}

func TestLimits(t *testing.T) {
	for name, cfg := range map[string]aisession.Settings{
		"node":    settingsWith(func(s *aisession.Settings) { s.MaxSessions = 1 }),
		"account": settingsWith(func(s *aisession.Settings) { s.MaxPerAccount = 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 160, nil)
			h := startService(t, cfg, p)
			run := h.start(request(account(p, "g711_ulaw"), ulaw))

			if _, err := h.Open(t.Context(),
				request(account(p, "g711_ulaw"), ulaw)); fault.KindOf(err) != fault.KindLimited {
				t.Errorf("a second session: %v", err)
			}
			if h.metric("trunkline_aisession_refused_total", "reason", name+"_limit") != 1 {
				t.Error("not counted")
			}

			other := account(p, "g711_ulaw")
			other.AccountID = "other"
			if session, err := h.Open(t.Context(), request(other, ulaw)); (err == nil) != (name == "account") {
				t.Errorf("another account: %v", err)
			} else if err == nil {
				session.Close("NO_ANSWER")
			}

			run.end(t, "")
			session, err := h.Open(t.Context(), request(account(p, "g711_ulaw"), ulaw))
			if err != nil {
				t.Fatalf("after the first ended: %v", err)
			}

			session.Close("ORIGINATOR_CANCEL")
		})
	}
}
