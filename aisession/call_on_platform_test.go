package aisession_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/aisession/pcmsocket"
	"trunkline/internal/fault"
)

// platform records what it is asked for, and refuses transfers to nobody.
type platform struct {
	mu    sync.Mutex
	asked []string
}

func (p *platform) ask(what string, c aisession.PlatformCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked,
		fmt.Sprintf("%s %s of %s by %s, other leg %s", what, c.CallID, c.AccountID, c.ProviderID, c.OtherLegCallID))
}

func (p *platform) Transfer(_ context.Context, c aisession.PlatformCall, destination string) error {
	p.ask("transfer to "+destination+":", c)
	if destination == "nobody" {
		return fault.New(fault.KindRefused, "Asterisk refused: no such extension")
	}
	return nil
}

func (p *platform) Hangup(_ context.Context, c aisession.PlatformCall) error {
	p.ask("hangup:", c)
	return nil
}

func (p *platform) AddListener(_ context.Context, c aisession.PlatformCall, h aisession.ListenRequest) error {
	p.ask(fmt.Sprintf("hear as %s, by a rule %t:", h.SessionID, h.ByRule), c)
	return nil
}

func (p *platform) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "\n")
}

// TestThePlatformTransfersAndEndsCallsThatOnlyBringAudio has calls of a media WebSocket transferred, and ended.
func TestThePlatformTransfersAndEndsCallsThatOnlyBringAudio(t *testing.T) {
	p := startProvider(t, 0, nil)
	p.extensions = true
	switches := &platform{}
	h := startService(t, aisession.DefaultSettings(), p, func(d *aisession.Deps) { d.Platform = switches })
	with := configOf(p, "pcm16")
	with.Extensions = true
	ingress := pcmsocket.New(h, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = ingress.ServeMedia(w, r, with) }))
	defer server.Close()

	call := func() (*websocket.Conn, *fakeConnection) {
		ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"callId":"c1","otherLegCallId":"o1"}`)); err != nil {
			t.Fatal(err)
		}

		go func() { // until the end of the call
			for {
				if _, _, err := ws.ReadMessage(); err != nil {
					return
				}
			}
		}()

		v := p.nextConnection()
		v.waitFor(t, "start", 1)
		return ws, v
	}

	ws, v := call()
	_ = v.send(`{"event":"transfer","transfer":{"destination":"nobody"}}`)
	if refused := v.waitFor(t, "transfer", 1); !strings.Contains(string(refused.body),
		"Asterisk refused: no such extension") {
		t.Errorf("refused with %s", refused.body)
	}

	_ = v.send(`{"event":"transfer","transfer":{"destination":"7000"}}`)
	v.waitHangup(t, "NORMAL_CLEARING")
	_ = ws.Close()
	ws, v = call()
	_ = v.send(`{"event":"hangup"}`)
	v.waitHangup(t, "NORMAL_CLEARING")
	_ = ws.Close()
	const of = " c1 of demo by prov1, other leg o1"
	want := "transfer to nobody:" + of + "\ntransfer to 7000:" + of + "\nhangup:" + of
	until(t, "the platform's requests", func() bool { return strings.Count(switches.all(), "\n") == 2 })

	if got := switches.all(); got != want {
		t.Errorf("the platform was asked for\n%s", got)
	}
}
