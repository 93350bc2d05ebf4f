package aisession_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
)

func TestACallThatDoesNotComeAbout(t *testing.T) {
	p := startProvider(t, 160, nil)
	h := startService(t, aisession.DefaultSettings(), p)
	session, err := h.Open(t.Context(), request(configOf(p, "g711_ulaw"), ulaw))
	if err != nil {
		t.Fatal(err)
	}

	session.Close("ORIGINATOR_CANCEL")
	if messages := p.nextConnection().waitHangup(t, "ORIGINATOR_CANCEL"); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}

// A call that ends while its provider cannot be reached is not waited for, and the provider does not
// hear of it.
func TestACallThatEndsBeforeItsProviderIsReached(t *testing.T) {
	for way, begin := range map[string]func(*testing.T, *testEnv, aiprovider.Provider) (hangUp func()){
		aisession.IngressPCMSocket: func(t *testing.T, h *testEnv, with aiprovider.Provider) func() {
			ws := mediaSocket(t, h, with)
			if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"callId":"c1"}`)); err != nil {
				t.Fatal(err)
			}
			return func() { _ = ws.Close() }
		},
		aisession.IngressAudioSocket: func(t *testing.T, h *testEnv, with aiprovider.Provider) func() {
			announceCall(t, h, with)
			a := dialAudioSocket(t, h)
			id := uuid.MustParse(callUUID)
			_ = a.send(0x01, id[:])
			return func() { _ = a.send(0x00, nil) }
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 160, nil)
			p.setRefusal(503)
			h := startService(t, settingsWith(func(s *aisession.Settings) { s.GiveUp = time.Hour }), p)
			hangUp := begin(t, h, configOf(p, "g711_ulaw"))
			active := func() float64 { return h.metric("trunkline_aisession_active", "ingress", way) }
			until(t, "an attempt to connect",
				func() bool { return h.metric("trunkline_aisession_connect_failures_total") > 0 })

			if active() != 1 {
				t.Fatalf("%v sessions are active", active())
			}

			hangUp()
			until(t, "the session to end", func() bool { return active() == 0 })
			if len(p.connections) != 0 {
				t.Error("the provider was told of the call")
			}

			until(t, "its reason to be counted",
				func() bool { return h.metric("trunkline_aisession_refused_total", "reason", "caller_hangup") == 1 })
		})
	}
}
