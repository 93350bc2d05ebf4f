package aisession_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/aisession/pcmsocket"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
)

// mediaSocket connects as FreeSWITCH does.
func mediaSocket(t *testing.T, h *testEnv, with aiprovider.Provider) *websocket.Conn {
	t.Helper()
	ingress := pcmsocket.New(h, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = ingress.ServeMedia(w, r, with) }))
	t.Cleanup(server.Close)
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = ws.Close() })
	return ws
}

func TestRefusedHandshakesOfMedia(t *testing.T) {
	ingress := pcmsocket.New(nil, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		key, origin string
		want        fault.Kind
	}{
		{"short", "", fault.KindInvalid},
		{"short", "http://switch.example", fault.KindInvalid},
		{"dGhlIHNhbXBsZSBub25jZQ==", "http://switch.example", fault.KindInternal},
		{"dGhlIHNhbXBsZSBub25jZQ==", "", fault.KindInternal}, // the recorder has no connection
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {c.key}}

		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}

		w := httptest.NewRecorder()
		if err := ingress.ServeMedia(w, r, aiprovider.Provider{}); fault.KindOf(err) != c.want || w.Body.Len() != 0 {
			t.Errorf("%+v: %v, wrote %s", c, err, w.Body)
		}
	}
}

// A client that sends audio alone is told what is missing.
func TestAMediaWebSocketWithoutAFirstText(t *testing.T) {
	p := startProvider(t, 960, echoAudio)
	ws := mediaSocket(t, startService(t, aisession.DefaultSettings(), p), configOf(p, "pcm16"))
	for range 251 {
		if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, 320)); err != nil {
			t.Fatal(err)
		}
	}

	_, _, err := ws.ReadMessage()
	if !websocket.IsCloseError(err, websocket.CloseUnsupportedData) || !strings.Contains(err.Error(), "JSON text") {
		t.Errorf("closed with %v", err)
	}
}

func TestACallByMediaWebSocket(t *testing.T) {
	p := startProvider(t, 960, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	ws := mediaSocket(t, h, configOf(p, "pcm16"))
	if err := ws.WriteMessage(websocket.TextMessage,
		[]byte(`{"callId":"c1","otherLegCallId":"o1","callerIdNumber":"+4930","calleeIdNumber":"7","sampleRate":16000,"more":1}`)); err != nil {
		t.Fatal(err)
	}

	talking := make(chan struct{})
	defer func() { _ = ws.Close(); <-talking }()

	go func() {
		defer close(talking)

		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()

		for tone := samples(16000, 20*time.Second); len(tone) > 0; tone = tone[640:] {
			for _, piece := range [][]byte{tone[:101], tone[101:640]} {
				if ws.WriteMessage(websocket.BinaryMessage, piece) != nil {
					return
				}
			}

			if sent := 20*32000 - len(tone); sent == 25*640 { // after half a second
				_ = ws.WriteMessage(websocket.TextMessage,
					[]byte(`{"event":"dtmf","dtmf":{"digit":"9","duration":120}}`))
				_ = ws.WriteMessage(websocket.TextMessage, []byte(`nonsense`))
			}

			<-ticker.C
		}
	}()

	var packets [][]byte
	hearsTone(t, audio.Format{Encoding: audio.PCM16, Rate: 16000}, 40, func() [][]byte {
		for range 40 {
			kind, frame, err := ws.ReadMessage()
			if err != nil || kind != websocket.BinaryMessage || len(frame) != 640 {
				t.Fatalf("a frame of kind %d with %d bytes, %v", kind, len(frame), err)
			}
			packets = append(packets, frame)
		}

		return packets
	})

	v := p.nextConnection()
	press := v.waitFor(t, "dtmf", 1)
	if want := `{"callId":"c1","otherLegCallId":"o1","digit":"9","duration":120}`; string(press.body) != want {
		t.Errorf("dtmf: %s", press.body)
	}

	_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""), time.Now().Add(time.Second))
	messages := v.waitHangup(t, "NORMAL_CLEARING")
	if !strings.Contains(string(messages[0].body),
		`"callId":"c1","otherLegCallId":"o1","callerIdNumber":"+4930","calleeIdNumber":"7"`) {
		t.Errorf("start: %s", messages[0].body)
	}
}

func TestAMediaWebSocketIsToldHowItEnds(t *testing.T) {
	hello := `{"callId":"c1"}`
	for _, c := range []struct {
		name   string
		first  string
		binary bool
		code   int
		reason string
		giveUp time.Duration
		setup  func(p *provider, with *aiprovider.Provider)
	}{
		{name: "the provider hangs up", giveUp: patience, first: hello, code: 1000, reason: "hangup USER_BUSY"},
		{name: "the provider is lost and the call handed back", giveUp: time.Second, first: hello, code: 1000,
			reason: "return", setup: func(p *provider, with *aiprovider.Provider) {
				with.Fallback = aiprovider.FallbackReturn
				p.behave = func(v *fakeConnection) { p.setRefusal(503); _ = v.NetConn().Close() }
			}},
		{name: "the provider is away", giveUp: 300 * time.Millisecond, first: hello, code: 1013, reason: "status 503",
			setup: func(p *provider, _ *aiprovider.Provider) { p.setRefusal(503) }},
		{name: "the provider refuses", giveUp: patience, first: hello, code: 1011, reason: "status 401",
			setup: func(p *provider, _ *aiprovider.Provider) { p.setRefusal(401) }},
		{name: "a first frame without a call", giveUp: patience, first: `{}`, code: 1008, reason: "callId"},
		{name: "a first frame of audio", giveUp: patience, first: "xx", binary: true, code: 1003, reason: "JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 160,
				func(v *fakeConnection) { _ = v.send(`{"event":"hangup","hangup":{"reason":"USER_BUSY"}}`) })
			with := configOf(p, "g711_ulaw")
			with.Extensions = true

			if c.setup != nil {
				c.setup(p, &with)
			}

			h := startService(t, settingsWith(func(s *aisession.Settings) { s.GiveUp = c.giveUp }), p)
			ws := mediaSocket(t, h, with)
			kind := websocket.TextMessage

			if c.binary {
				kind = websocket.BinaryMessage
			}
			if err := ws.WriteMessage(kind, []byte(c.first)); err != nil {
				t.Fatal(err)
			}

			for {
				_, _, err := ws.ReadMessage()
				var closed *websocket.CloseError
				if err == nil {
					continue
				}
				if !errors.As(err, &closed) || closed.Code != c.code || !strings.Contains(closed.Text, c.reason) {
					t.Errorf("closed with %v", err)
				}

				return
			}
		})
	}
}
