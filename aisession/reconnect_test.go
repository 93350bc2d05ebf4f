package aisession_test

import (
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
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
			run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
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

				with := configOf(p, "g711_ulaw")
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
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
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
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
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
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	if e := run.wait(t); e.Reason != aisession.ProviderSilent || time.Since(begun) < 300*time.Millisecond {
		t.Errorf("ended: %+v after %v", e, time.Since(begun))
	}
	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
}
