package aisession_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
)

// TestWhatAProviderSendsWrong: the call continues, and each error is counted.
func TestWhatAProviderSendsWrong(t *testing.T) {
	for _, c := range []struct {
		name, problem, message string
		binary                 bool
	}{
		{name: "no JSON", problem: "not_json", message: "hello"},
		{name: "an array", problem: "not_json", message: `[{"event":"media"}]`},
		{name: "nested without end", problem: "not_json", message: strings.Repeat("[", 100000)},
		{name: "no UTF-8", problem: "not_json", message: "{\"event\":\"\xff\"}"},
		{name: "no event", problem: "no_event", message: `{"media":{"payload":"AAAA"}}`},
		{name: "an event of its own", problem: "unknown_event", message: `{"event":"speak","speak":{}}`},
		{name: "our own start", problem: "unknown_event", message: `{"event":"start","start":{}}`},
		{name: "media without an object", problem: "bad_body", message: `{"event":"media"}`},
		{name: "media without a payload", problem: "bad_field", message: `{"event":"media","media":{}}`},
		{name: "a payload that is a number", problem: "bad_field", message: `{"event":"media","media":{"payload":1}}`},
		{name: "wrong base64", problem: "bad_base64", message: `{"event":"media","media":{"payload":"!!!!"}}`},
		{name: "no audio", problem: "empty", message: `{"event":"media","media":{"payload":""}}`},
		{name: "a binary frame", problem: "binary", message: "\x00\x01", binary: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kind := websocket.TextMessage
			if c.binary {
				kind = websocket.BinaryMessage
			}

			p := startProvider(t, 160, func(v *fakeConnection) {
				_ = v.WriteMessage(kind, []byte(c.message))
				_ = v.sendAudio(make([]byte, 1600))
			})

			h := startService(t, aisession.DefaultSettings(), p)
			run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
			v := p.nextConnection()
			until(t, "what follows to be played", func() bool {
				return strings.Contains(string(run.phone.playedAudio()), strings.Repeat("\x00", 1600))
			})
			run.end(t, "")
			v.waitHangup(t, "NORMAL_CLEARING")

			if h.metric("trunkline_aisession_ignored_messages_total", "problem", c.problem) != 1 {
				t.Error("it was not counted")
			}
		})
	}
}

func TestAMessageOverTheLimitEndsTheSession(t *testing.T) {
	for fallback, back := range map[aiprovider.Fallback]bool{aiprovider.FallbackHangup: false,
		aiprovider.FallbackReturn: true} {
		t.Run(string(fallback), func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 160, func(v *fakeConnection) {
				v.writing.Lock()
				defer v.writing.Unlock()
				w, err := v.NextWriter(websocket.TextMessage)
				for piece := make([]byte, 64<<10); err == nil; { // 50 MB or until the connection breaks
					_, err = w.Write(piece)
				}
			})

			h := startService(t, aisession.DefaultSettings(), p)
			with := configOf(p, "g711_ulaw")
			with.Fallback = fallback
			run := h.start(request(with, ulaw))
			if e := run.wait(t); e.Reason != aisession.ProviderTooLarge || e.ReturnToDialplan != back {
				t.Errorf("ended: %+v", e)
			}

			v := p.nextConnection()
			v.waitEnd(t)
			if v.closed != websocket.CloseMessageTooBig {
				t.Errorf("closed with %d, want 1009", v.closed)
			}
			if len(p.connections) != 0 {
				t.Error("it was tried again")
			}
		})
	}
}

func TestAFloodOfNonsenseIsReadSlowly(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of audio")
	}

	t.Parallel()
	p := startProvider(t, 160, func(v *fakeConnection) {
		for v.send(`{"event":"nonsense"}`) == nil {
		}
	})

	h := startService(t, aisession.DefaultSettings(), p)
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	v := p.nextConnection()
	v.waitFor(t, "media", 75)
	frames := run.phone.frames()

	if e := run.end(t, ""); e.Reason != aisession.CallerHungUp {
		t.Errorf("ended: %+v", e)
	}

	v.waitHangup(t, "NORMAL_CLEARING")
	if got := h.metric("trunkline_aisession_ignored_messages_total", "problem", "unknown_event"); got < 1000 ||
		got > 2500 {
		t.Errorf("%g messages were read in two seconds", got)
	}
	if frames < 70 {
		t.Errorf("the call received %d frames", frames)
	}
}

func TestAProviderThatSendsHoursKeepsToTheLimit(t *testing.T) {
	t.Parallel()
	p := startProvider(t, 160, func(v *fakeConnection) {
		for range 100 {
			_ = v.sendAudio(make([]byte, 8000)) // a second each
		}
	})

	h := startService(t, settingsWith(func(s *aisession.Settings) { s.PlayoutLimit = 10 * time.Second }), p)
	run := h.start(request(configOf(p, "g711_ulaw"), ulaw))
	until(t, "what is too much to be dropped", func() bool {
		got := h.metric("trunkline_aisession_overrun_seconds_total")
		return got > 88 && got < 91
	})

	run.end(t, "")
	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
}

// TestAProviderThatDoesNotRead drops the oldest audio; the call continues.
func TestAProviderThatDoesNotRead(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a timeout")
	}

	t.Parallel()
	stall := make(chan struct{})
	server := startProvider(t, 0, nil)
	server.stall = stall
	h := startService(t, aisession.DefaultSettings(), server)
	run := h.start(request(configOf(server, "pcm16"), ulaw))
	until(t, "audio to be dropped", func() bool {
		return h.metric("trunkline_aisession_dropped_total", "kind", "frame_to_provider") > 20
	})

	frames := func() int {
		run.phone.mu.Lock()
		defer run.phone.mu.Unlock()
		return len(run.phone.playedAt)
	}

	before := frames()
	until(t, "the call to receive more audio", func() bool { return frames() >= before+20 })
	close(stall)
	run.end(t, "")
}

// TestProvidersThatCannotBeReached: Open says why, in words without a secret.
func TestProvidersThatCannotBeReached(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = silent.Close() })
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = plain.Close() })
	go func() {
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}

			_, _ = conn.Write([]byte("SSH-2.0-none\r\n"))
			time.Sleep(20 * time.Millisecond)
			_ = conn.Close()
		}
	}()

	for _, c := range []struct {
		name   string
		status int
		url    string
		kind   fault.Kind
		words  string
		bad    bool // a certificate of an unknown authority
		guard  bool // loopback is not allowed
	}{
		{name: "never answers the handshake", url: "wss://" + silent.Addr().String(), kind: fault.KindUnavailable,
			words: "did not answer in time"},
		{name: "nobody listens", url: "wss://127.0.0.1:1", kind: fault.KindUnavailable, words: "failed"},
		{name: "speaks something else", url: "wss://" + plain.Addr().String(), kind: fault.KindUnavailable,
			words: "does not speak TLS"},
		{name: "refuses", status: 401, kind: fault.KindRefused, words: "status 401"},
		{name: "is out of order", status: 503, kind: fault.KindUnavailable, words: "status 503"},
		{name: "upgrades to something else", status: 101, kind: fault.KindRefused,
			words: "not a valid WebSocket handshake"},
		{name: "redirects to a private address", status: 302, kind: fault.KindRefused, words: "status 302"},
		{name: "a bad certificate", bad: true, kind: fault.KindRefused, words: "certificate"},
		{name: "a private address", guard: true, kind: fault.KindRefused, words: "not public"},
		{name: "a name that does not resolve", url: "wss://none.invalid/", kind: fault.KindUnavailable,
			words: "does not resolve"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 0, nil)
			p.setRefusal(c.status)
			known := p

			if c.bad {
				known = nil
			}

			limit := 3 * time.Second // on a slow machine a handshake takes long
			if c.words == "did not answer in time" {
				limit = 300 * time.Millisecond
			}

			h := startService(t, settingsWith(func(s *aisession.Settings) {
				s.ConnectTimeout = limit
				s.GiveUp = limit + 500*time.Millisecond
			}), known)

			if c.guard {
				h.allow = nil
			}

			with := configOf(p, "g711_ulaw")
			if c.url != "" {
				with.URL = c.url
			}

			_, err := h.Open(t.Context(), request(with, ulaw))
			f := fault.As(err)
			if f.Kind != c.kind || !strings.Contains(f.Message, c.words) {
				t.Errorf("Open: %s, %q", f.Kind, f.Message)
			}

			report, err := h.TestProvider(t.Context(), with)
			if err != nil || report.OK || !strings.Contains(report.Error, c.words) || len(report.Events) != 0 {
				t.Errorf("Test: %+v, %v", report, err)
			}
			if strings.Contains(errorText(err)+report.Error+f.Message, "secret") ||
				strings.Contains(f.Message, "127.0.0.1") {
				t.Error("a secret or an address is shown")
			}

			if h.metric("trunkline_aisession_active", "ingress", "sip") != 0 {
				t.Error("it counts as active")
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
