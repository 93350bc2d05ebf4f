package wsframe

import (
	"net/http/httptest"
	"testing"
)

func TestHandshakes(t *testing.T) {
	for _, c := range []struct {
		method, connection, upgrade, version string
		proto                                int
		want                                 bool
	}{
		{"GET", "Upgrade", "websocket", "13", 1, true},
		{"GET", "keep-alive, Upgrade", "WebSocket", "13", 1, true},
		{"GET", "Upgrade", "websocket", "8", 1, false},
		{"GET", "Upgrade", "websocket", "", 1, false},
		{"GET", "keep-alive", "websocket", "13", 1, false},
		{"GET", "Upgrade", "h2c", "13", 1, false},
		{"POST", "Upgrade", "websocket", "13", 1, false},
		{"GET", "", "", "", 2, false},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.ProtoMajor = c.proto
		r.Header.Set("Connection", c.connection)
		r.Header.Set("Upgrade", c.upgrade)
		r.Header.Set("Sec-WebSocket-Version", c.version)
		w := httptest.NewRecorder()
		if RequireHandshake(w, r) != c.want || IsHandshake(r) != c.want {
			t.Errorf("%+v", c)
		}
		if got := w.Header().Get("Sec-WebSocket-Version"); (got == "13") == c.want {
			t.Errorf("%+v: Sec-WebSocket-Version %q", c, got)
		}
		if got := w.Header().Get("Upgrade"); (got == "websocket") != (!c.want && c.proto == 1) ||
			got != "" && w.Header().Get("Connection") != "Upgrade" {
			t.Errorf("%+v: %v", c, w.Header())
		}
	}
}
