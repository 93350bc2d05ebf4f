package aisession_test

import (
	"sync"
	"testing"

	"trunkline/aisession"
	"trunkline/internal/fault"
)

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
		session, err := h.Open(t.Context(), request(configOf(p, "g711_ulaw"), ulaw))
		if err != nil {
			t.Fatalf("session %d: %v", i+1, err)
		}
		defer closing.Go(func() { session.Close("NO_ANSWER") })
	}

	if _, err := h.Open(t.Context(), request(configOf(p, "g711_ulaw"), ulaw)); fault.KindOf(err) != fault.KindLimited {
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
			run := h.start(request(configOf(p, "g711_ulaw"), ulaw))

			if _, err := h.Open(t.Context(),
				request(configOf(p, "g711_ulaw"), ulaw)); fault.KindOf(err) != fault.KindLimited {
				t.Errorf("a second session: %v", err)
			}
			if h.metric("trunkline_aisession_refused_total", "reason", name+"_limit") != 1 {
				t.Error("not counted")
			}

			other := configOf(p, "g711_ulaw")
			other.AccountID = "other"
			if session, err := h.Open(t.Context(), request(other, ulaw)); (err == nil) != (name == "account") {
				t.Errorf("another account: %v", err)
			} else if err == nil {
				session.Close("NO_ANSWER")
			}

			run.end(t, "")
			session, err := h.Open(t.Context(), request(configOf(p, "g711_ulaw"), ulaw))
			if err != nil {
				t.Fatalf("after the first ended: %v", err)
			}

			session.Close("ORIGINATOR_CANCEL")
		})
	}
}
