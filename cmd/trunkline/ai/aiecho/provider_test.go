package aiecho

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open returns a provider, its output, and a connection to it.
func open(t *testing.T) (*Provider, *lockedBuffer, *websocket.Conn) {
	t.Helper()
	out := &lockedBuffer{}
	p := New(out)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close)
	header := http.Header{"Authorization": {"Bearer sesame"}, "X-Tenant": {"7"}}
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"/voice", header)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })
	return p, out, conn
}

func send(t *testing.T, conn *websocket.Conn, kind int, messages ...[]byte) {
	t.Helper()
	for _, m := range messages {
		if err := conn.WriteMessage(kind, m); err != nil {
			t.Fatal(err)
		}
	}
}

func start() []byte {
	return aiprotocol.AppendStart(nil, aiprotocol.Start{
		Call: aiprotocol.Call{CallID: "call-1"}, CallerIDNumber: "+15551230001", CalleeIDNumber: "+15551230002\x1b[2J",
		AccountID: "demo",
		Media:     aiprotocol.Format{Encoding: aiprotocol.ULaw, SampleRate: 8000},
	})
}

func TestASessionIsAnsweredAndTold(t *testing.T) {
	p, out, conn := open(t)
	media := aiprotocol.AppendMedia(nil, make([]byte, 160))
	call := aiprotocol.Call{CallID: "call-1"}
	send(t, conn, websocket.TextMessage, start(), media, media,
		aiprotocol.AppendDTMF(nil, aiprotocol.DTMF{Call: call, Digit: "5", Duration: 160 * time.Millisecond}),
		aiprotocol.AppendHangup(nil, aiprotocol.Hangup{Call: call, Reason: aiprotocol.NormalClearing}))

	for range 2 {
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != string(media) {
			t.Fatalf("got %s, %v", got, err)
		}
	}

	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	send(t, conn, websocket.CloseMessage, bye)
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the close is answered with %v", err)
	}

	p.Close()
	text := out.String()
	for _, want := range []string{
		"session 1: open, /voice, with the headers Authorization, X-Tenant\n",
		`session 1: start, call "call-1", other leg "", from "+15551230001" to "+15551230002\x1b[2J", account "demo", g711_ulaw at 8000 Hz` +
			"\n",
		"session 1: dtmf 5, 160 ms\n", "session 1: hangup NORMAL_CLEARING\n",
		"session 1: closed, 1000 : 1 start, 2 media, 1 dtmf, 1 hangup\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}

	if strings.Contains(text, "sesame") || strings.Contains(text, "\x1b") || strings.Contains(text, "VIOLATION") {
		t.Errorf("told\n%s", text)
	}
}

func TestWhatIsNotOfTheProtocolIsToldAndBorne(t *testing.T) {
	p, out, conn := open(t)
	media := aiprotocol.AppendMedia(nil, []byte{1})
	send(t, conn, websocket.TextMessage, media, start(), start(), []byte("hello\x1b[2J"),
		[]byte(`{"event":"dance","dance":{}}`))
	send(t, conn, websocket.BinaryMessage, make([]byte, 320))
	send(t, conn, websocket.TextMessage, aiprotocol.AppendHangup(nil, aiprotocol.Hangup{}), media)

	for range 2 {
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != string(media) {
			t.Fatalf("got %s, %v", got, err)
		}
	}

	p.Close()
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the provider's end: %v", err)
	}

	text := out.String()
	for _, want := range []string{"media before start", "a second start", "not valid JSON", `"dance" is no event`,
		"a binary frame of 320 bytes",
		"media after hangup", "2 start, 2 media, 1 hangup, 6 not of the protocol"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestARequestThatIsNoWebSocket(t *testing.T) {
	var out lockedBuffer
	w := httptest.NewRecorder()
	New(&out).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if text := out.String(); w.Code != http.StatusBadRequest || !strings.Contains(text, "refused") {
		t.Errorf("%d, %s", w.Code, text)
	}
}
