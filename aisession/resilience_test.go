package aisession_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

func TestALostProviderIsFoundAgain(t *testing.T) {
	for name, lose := range map[string]func(*fakeConnection){
		"closes half-way": func(v *fakeConnection) {
			_ = v.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, ""))
		},
		"breaks": func(v *fakeConnection) { _ = v.NetConn().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 160, nil)
			h := startService(t, aisession.DefaultSettings(), p)
			run := h.start(request(account(p, "g711_ulaw"), ulaw))
			first := p.nextConnection()
			first.waitFor(t, "media", 10)
			_ = first.sendAudio(make([]byte, 16000))
			until(t, "the provider to be heard", func() bool { return run.phone.frames() > 12 })
			first.writing.Lock()
			lose(first)
			first.writing.Unlock()

			second := p.nextConnection() // TestBackOffIsShortAtFirstAndBounded shows the times of the attempts
			frames := run.phone.frames()
			second.waitFor(t, "media", 20)

			sound := run.phone.playedAudio()[(frames+4)*160:]
			for _, b := range sound {
				if b != 0xff {
					t.Error("audio of the lost connection was played")
					break
				}
			}

			run.end(t, "")
			messages := second.waitHangup(t, "NORMAL_CLEARING")
			if messages[0].event != "start" {
				t.Error("no start on the second connection")
			}
			if h.metric("trunkline_aisession_reconnects_total") != 1 ||
				h.metric("trunkline_aisession_started_total", "ingress", "sip") != 1 {
				t.Error("the metrics do not agree")
			}
		})
	}
}

func TestAProviderThatStaysAwayIsGivenUp(t *testing.T) {
	for fallback, back := range map[aiprovider.Fallback]bool{aiprovider.FallbackHangup: false,
		aiprovider.FallbackReturn: true} {
		for status, reason := range map[int]aisession.EndReason{503: aisession.ProviderLost,
			403: aisession.ProviderRefused} {
			t.Run(string(fallback)+" "+string(reason), func(t *testing.T) {
				t.Parallel()
				p := startProvider(t, 160, nil)
				h := startService(t, settingsWith(func(s *aisession.Settings) {
					s.GiveUp = patience
					if reason == aisession.ProviderLost {
						s.GiveUp = 700 * time.Millisecond
					}
				}), p)

				with := account(p, "g711_ulaw")
				with.Fallback = fallback
				run := h.start(request(with, ulaw))
				v := p.nextConnection()
				v.waitFor(t, "media", 3)
				p.setRefusal(status)
				_ = v.NetConn().Close()
				lost := time.Now()

				if e := run.wait(t); e.Reason != reason || e.ReturnToDialplan != back {
					t.Errorf("ended: %+v", e)
				}
				if took := time.Since(lost); reason == aisession.ProviderLost && took < 600*time.Millisecond {
					t.Errorf("the session ended after %v", took)
				}
			})
		}
	}
}

func TestAProviderThatFlapsIsGivenUp(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) { _ = v.NetConn().Close() })
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.GiveUp = time.Second }), p)
	run := h.start(request(account(p, "g711_ulaw"), ulaw))
	if e := run.wait(t); e.Reason != aisession.ProviderLost {
		t.Errorf("ended: %+v", e)
	}
	if n := len(p.connections); n < 2 || n > 12 { // at once, and after growing pauses
		t.Errorf("%d connections within the second", n)
	}
}

func TestACallThatEndsWhileTheProviderIsAway(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.GiveUp = 10 * patience }), p)
	run := h.start(request(account(p, "g711_ulaw"), ulaw))
	v := p.nextConnection()
	v.waitFor(t, "media", 3)
	p.setRefusal(503)
	_ = v.NetConn().Close()
	until(t, "the loss to be noticed",
		func() bool { return h.metric("trunkline_aisession_connect_failures_total") > 0 })

	if e := run.end(t, "NORMAL_CLEARING"); e.Reason != aisession.CallerHungUp {
		t.Errorf("ended: %+v", e)
	}
}

func TestASilentProviderIsGivenUpWhereThatIsSet(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) { _ = v.sendAudio(make([]byte, 4000)) })
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.SilenceTimeout = 300 * time.Millisecond }), p)
	begun := time.Now()
	run := h.start(request(account(p, "g711_ulaw"), ulaw))
	if e := run.wait(t); e.Reason != aisession.ProviderSilent || time.Since(begun) < 300*time.Millisecond {
		t.Errorf("ended: %+v after %v", e, time.Since(begun))
	}
	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
}

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

func TestACallThatDoesNotComeAbout(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, aisession.DefaultSettings(), p)
	session, err := h.Open(t.Context(), request(account(p, "g711_ulaw"), ulaw))
	if err != nil {
		t.Fatal(err)
	}

	session.Close("ORIGINATOR_CANCEL")
	if messages := p.nextConnection().waitHangup(t, "ORIGINATOR_CANCEL"); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}

func TestAnnouncements(t *testing.T) {
	h := startService(t, aisession.DefaultSettings(), nil)
	h.providers = map[string]aiprovider.Provider{"prov1": {ID: "prov1", AccountID: "demo"},
		"theirs": {ID: "theirs", AccountID: "other"}}
	const id = "6d1a2b3c-0000-4000-8000-00000000abcd"
	a := aiprovider.Announcement{AccountID: "demo", ProviderID: "prov1", UUID: id, CallID: "c",
		CallerIDNumber: "+49301"}
	if err := h.Announce(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := h.Announce(t.Context(), a); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("twice: %v", err)
	}

	got, p, err := h.TakeAnnouncement(t.Context(), mustUUID(t, id))
	if err != nil || got != a || p.ID != "prov1" {
		t.Errorf("got %+v, %v, %v", got, p, err)
	}

	if _, _, err := h.TakeAnnouncement(t.Context(), mustUUID(t, id)); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("a second time: %v", err)
	}

	a.ProviderID = "theirs"
	if err := h.Announce(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.TakeAnnouncement(t.Context(), mustUUID(t, id)); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("another account's provider: %v", err)
	}

	a.UUID = "none"
	if err := h.Announce(t.Context(), a); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("no UUID: %v", err)
	}
}

func TestCallsGoOnWithoutRedisAndKafka(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, settingsWith(func(s *aisession.Settings) { s.MaxPerAccount = 1 }), p)
	h.redis.Close()
	h.events.mu.Lock()
	h.events.fail = true
	h.events.mu.Unlock()

	run := h.start(request(account(p, "g711_ulaw"), ulaw))
	p.nextConnection().waitFor(t, "media", 5)
	run.end(t, "")
	until(t, "the events to be counted as lost", func() bool {
		return h.metric("trunkline_aisession_dropped_total", "kind", "event") == 2
	})

	if err := h.Announce(t.Context(),
		aiprovider.Announcement{UUID: callUUID}); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("announcing: %v", err)
	}
	if _, _, err := h.TakeAnnouncement(t.Context(), mustUUID(t, callUUID)); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("looking up: %v", err)
	}
}

func TestSessionLeasesAreKeptAndExpire(t *testing.T) {
	store := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: store.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	take := leasesAreKept(t, client, "x:")
	store.FastForward(2 * time.Minute) // the node that had them is gone
	if !take("d") || !take("e") {
		t.Error("expired leases count")
	}
}

func TestSessionLeasesAreKeptInARedisCluster(t *testing.T) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testservice.RedisCluster(t)})
	t.Cleanup(func() { _ = client.Close() })
	leasesAreKept(t, client, testservice.Prefix(t))
}

// leasesAreKept returns a function that acquires one of the account's two leases,
// which are both held.
func leasesAreKept(t *testing.T, client redis.UniversalClient, prefix string) (take func(session string) bool) {
	t.Helper()
	leases := aisession.NewRedisSessionLeases(client, prefix)
	take = func(session string) bool {
		t.Helper()
		ok, err := leases.Acquire(t.Context(), "demo", session, 2)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !take("a") || !take("b") || take("c") {
		t.Error("the limit of two leases is not obeyed")
	}

	if err := leases.Renew(t.Context(), map[string]string{"a": "demo", "b": "demo", "x": "other"}); err != nil {
		t.Fatal(err)
	}
	if take("c") {
		t.Error("renewed leases do not count")
	}
	if err := leases.Release(t.Context(), "demo", "a"); err != nil {
		t.Fatal(err)
	}
	if !take("c") {
		t.Error("a released lease counts")
	}

	return take
}
