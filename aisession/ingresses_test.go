package aisession_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/aisession/audiosocket"
	"trunkline/aisession/pcmsocket"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
)

// echoAudio sends every frame of audio back.
func echoAudio(v *fakeConnection) {
	for sent := 0; ; {
		received := v.received()
		for ; sent < len(received); sent++ {
			if received[sent].event == "media" && v.sendAudio(received[sent].audio) != nil {
				return
			}
		}

		select {
		case <-v.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// samples is a tone as 16-bit PCM.
func samples(rate int, length time.Duration) []byte {
	var raw []byte
	for i := range int(length.Seconds() * float64(rate)) {
		raw = binary.LittleEndian.AppendUint16(raw,
			uint16(int16(9000*math.Sin(2*math.Pi*440*float64(i)/float64(rate)))))
	}
	return raw
}

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
	ws := mediaSocket(t, startService(t, aisession.DefaultSettings(), p), account(p, "pcm16"))
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
	ws := mediaSocket(t, h, account(p, "pcm16"))
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
			with := account(p, "g711_ulaw")
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
			hangUp := begin(t, h, account(p, "g711_ulaw"))
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

// asterisk is the other end of an AudioSocket.
type asterisk struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dialAudioSocket(t *testing.T, h *testEnv) *asterisk { return dialAudioSocketOf(t, h) }

// again makes another connection to the same server.
func (a *asterisk) again() *asterisk {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.RemoteAddr().String())
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	return &asterisk{conn, a.t, bufio.NewReader(conn)}
}

func dialAudioSocketOf(t *testing.T, h audiosocket.Sessions) *asterisk {
	t.Helper()
	server, err := audiosocket.New(audiosocket.Settings{Listen: "127.0.0.1:0", MaxConnections: 100}, h,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()

	conn, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { // before the house goes down
		_ = conn.Close()
		cancel()
		<-done
	})

	return &asterisk{conn, t, bufio.NewReader(conn)}
}

// talk sends audio of a rate, a frame of it every 20 ms, until silent is called
// or there is no more.
func (a *asterisk) talk(kind byte, rate int, audio []byte) (silent func()) {
	stop, talking := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(talking)

		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()

		n := rate / 25
		for ; len(audio) > 0; audio = audio[n:] {
			if a.send(kind, audio[:n]) != nil {
				return
			}

			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	}()

	return func() { close(stop); <-talking }
}

func (a *asterisk) send(kind byte, payload []byte) error {
	_, err := a.Write(append([]byte{kind, byte(len(payload) >> 8), byte(len(payload))}, payload...))
	return err
}

func (a *asterisk) read() (kind byte, payload []byte, err error) {
	_ = a.SetReadDeadline(time.Now().Add(patience))
	header := make([]byte, 3)
	if _, err := io.ReadFull(a.r, header); err != nil {
		return 0, nil, err
	}
	payload = make([]byte, binary.BigEndian.Uint16(header[1:]))
	_, err = io.ReadFull(a.r, payload)
	return header[0], payload, err
}

const callUUID = "6d1a2b3c-0000-4000-8000-00000000abcd"

func announceCall(t *testing.T, h *testEnv, with aiprovider.Provider) {
	t.Helper()
	h.providers = map[string]aiprovider.Provider{with.ID: with}
	a := aiprovider.Announcement{AccountID: with.AccountID, ProviderID: with.ID, UUID: callUUID,
		CallerIDNumber: "+4930", CalleeIDNumber: "7"}
	if err := h.Announce(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

func TestACallByAudioSocket(t *testing.T) {
	for name, c := range map[string]struct {
		kind byte
		rate int
	}{"8 kHz": {0x10, 8000}, "16 kHz": {0x12, 16000}, "48 kHz": {0x16, 48000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 960, echoAudio)
			h := startService(t, aisession.DefaultSettings(), p)
			announceCall(t, h, account(p, "pcm16"))
			tone := samples(c.rate, 20*time.Second) // before the call: its first audio must not be late
			a := dialAudioSocket(t, h)
			id := uuid.MustParse(callUUID)
			_ = a.send(0x01, id[:])
			silent := a.talk(c.kind, c.rate, tone)
			defer func() { _ = a.Close(); silent() }()

			var packets [][]byte
			hearsTone(t, audio.Format{Encoding: audio.PCM16, Rate: c.rate}, 30, func() [][]byte {
				for range 40 {
					kind, frame, err := a.read()
					if err != nil || kind != c.kind || len(frame) != c.rate/25 {
						t.Fatalf("kind %#x of %d bytes, %v", kind, len(frame), err)
					}
					packets = append(packets, frame)
				}

				return packets
			})

			_ = a.send(0x03, []byte("4"))
			v := p.nextConnection()
			if press := v.waitFor(t, "dtmf",
				1); string(press.body) != `{"callId":"`+callUUID+`","otherLegCallId":"","digit":"4"}` {
				t.Errorf("dtmf: %s", press.body)
			}

			_ = a.send(0x00, nil)
			v.waitHangup(t, "NORMAL_CLEARING")
		})
	}
}

// TestAnAudioSocketChangesItsRate: the session began at 8 kHz, for the caller was
// silent; then 16 kHz come, and later 8 kHz again.
func TestAnAudioSocketChangesItsRate(t *testing.T) {
	t.Parallel()
	p := startProvider(t, 960, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	announceCall(t, h, account(p, "pcm16"))
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])
	v := p.nextConnection()
	v.waitFor(t, "start", 1) // the session begins without audio

	for _, c := range []struct {
		kind byte
		rate int
	}{{0x12, 16000}, {0x10, 8000}} {
		silent := a.talk(c.kind, c.rate, samples(c.rate, 20*time.Second))
		var packets [][]byte
		hearsTone(t, audio.Format{Encoding: audio.PCM16, Rate: c.rate}, 30, func() [][]byte {
			for n := 0; n < 40; {
				kind, frame, err := a.read()
				if err != nil || rateOf[kind] == 0 || len(frame) != rateOf[kind]/25 {
					t.Fatalf("kind %#x of %d bytes, %v", kind, len(frame), err)
				}

				if kind == c.kind { // those before the change are on their way
					packets = append(packets, frame)
					n++
				}
			}

			return packets
		})

		silent()
	}

	_ = a.send(0x00, nil)
	v.waitHangup(t, "NORMAL_CLEARING")
}

var rateOf = map[byte]int{0x10: 8000, 0x12: 16000}

// TestAnAudioSocketCannotTransfer: the provider receives the refusal.
func TestAnAudioSocketCannotTransfer(t *testing.T) {
	p := startProvider(t, 160,
		func(v *fakeConnection) { _ = v.send(`{"event":"transfer","transfer":{"destination":"1002"}}`) })
	p.extensions = true
	h := startService(t, aisession.DefaultSettings(), p)
	with := account(p, "g711_ulaw")
	with.Extensions = true
	announceCall(t, h, with)
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])
	v := p.nextConnection()
	if m := v.waitFor(t, "transfer",
		1); string(m.body) != `{"destination":"1002","error":"AudioSocket cannot transfer a call"}` {
		t.Errorf("told %s", m.body)
	}

	v.waitFor(t, "media", 5)
	_ = a.send(0x00, nil)
	v.waitHangup(t, "NORMAL_CLEARING")
}

// A key that the door of the call cannot send is answered with an error, and the call continues.
func TestAKeyThatCannotBeSentIsAnswered(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) { _ = v.send(`{"event":"dtmf","dtmf":{"digit":"5"}}`) })
	p.extensions = true
	h := startService(t, aisession.DefaultSettings(), p)
	with := account(p, "g711_ulaw")
	with.Extensions = true
	announceCall(t, h, with)
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])
	v := p.nextConnection()
	if m := v.waitFor(t, "error", 1); string(m.body) != `{"event":"dtmf","message":"AudioSocket cannot send DTMF"}` {
		t.Errorf("told %s", m.body)
	}

	v.waitFor(t, "media", 5)
	_ = a.send(0x00, nil)
	v.waitHangup(t, "NORMAL_CLEARING")
}

func TestAnAudioSocketThatIsRefused(t *testing.T) {
	id := uuid.MustParse(callUUID)
	for name, first := range map[string]func(*asterisk){
		"nobody announced it": func(a *asterisk) { _ = a.send(0x01, id[:]) },
		"no UUID":             func(a *asterisk) { _ = a.send(0x10, make([]byte, 320)) },
		"a short UUID":        func(a *asterisk) { _ = a.send(0x01, id[:7]) },
		"half a message": func(a *asterisk) {
			_, _ = a.Write(
				[]byte{1, 0})
			_ = a.Conn.(*net.TCPConn).CloseWrite()
		},
		"HTTP": func(a *asterisk) {
			_, _ = io.WriteString(a,
				"GET / HTTP/1.1\r\n\r\n"+strings.Repeat("x", 1<<16))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startService(t, aisession.DefaultSettings(), nil)
			a := dialAudioSocket(t, h)
			first(a)

			if kind, _, err := a.read(); err == nil && kind != 0x00 {
				t.Errorf("got kind %#x", kind)
			}
			if _, _, err := a.read(); err == nil {
				t.Error("the connection continues")
			}
		})
	}
}

func TestAnAudioSocketHearsThatTheProviderHangsUp(t *testing.T) {
	p := startProvider(t, 160, func(v *fakeConnection) { _ = v.send(`{"event":"hangup","hangup":{}}`) })
	h := startService(t, aisession.DefaultSettings(), p)
	with := account(p, "g711_ulaw")
	with.Extensions = true
	announceCall(t, h, with)
	a := dialAudioSocket(t, h)
	id := uuid.MustParse(callUUID)
	_ = a.send(0x01, id[:])

	for {
		kind, _, err := a.read()
		if err != nil {
			t.Fatalf("no hangup: %v", err)
		}

		if kind == 0x00 {
			break
		}
	}

	p.nextConnection().waitHangup(t, "NORMAL_CLEARING")
}
