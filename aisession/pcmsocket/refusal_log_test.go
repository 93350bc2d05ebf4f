package pcmsocket

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/config/aiprovider"
)

// A switch's module does not log why it was closed.
func TestTheLogSaysWhyACallWasRefused(t *testing.T) {
	for name, c := range map[string]struct {
		frames func(*websocket.Conn) error
		want   string
	}{
		"two channels for a bot": {func(ws *websocket.Conn) error {
			return ws.WriteMessage(websocket.TextMessage, []byte(`{"callId":"a","channels":2}`))
		}, `code=1008 reason="the provider answers calls: it hears the caller only"`},
		"audio only": {func(ws *websocket.Conn) error {
			for range maxEarlyFrames + 1 {
				if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, 320)); err != nil {
					return err
				}
			}
			return nil
		}, `code=1003 reason="the first frame must be JSON text"`},
		"closed at once": {func(ws *websocket.Conn) error {
			return ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1001, ""))
		}, `without a first text frame" provider_id=p1 error="websocket: close 1001`},
	} {
		t.Run(name, func(t *testing.T) {
			var lines bytes.Buffer
			ingress := New(nil, slog.New(slog.NewTextHandler(&lines, nil)))
			served := make(chan error, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served <- ingress.ServeMedia(w, r, aiprovider.Provider{ID: "p1"})
			}))
			defer server.Close()

			ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ws.Close() }()

			if err := c.frames(ws); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, _, err = ws.ReadMessage()
			}

			if err := <-served; err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(lines.String(), c.want) || !strings.Contains(lines.String(), "provider_id=p1") {
				t.Errorf("logged %q, want %s", lines.String(), c.want)
			}
		})
	}
}
