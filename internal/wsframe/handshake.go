package wsframe

import (
	"net/http"
	"strings"
)

// version is the protocol version of RFC 6455.
const version = "13"

// IsHandshake reports whether the request opens a WebSocket of the supported version
// (RFC 6455, section 4.2.1).
func IsHandshake(r *http.Request) bool {
	return r.Method == http.MethodGet && hasToken(r.Header, "Connection", "upgrade") &&
		hasToken(r.Header, "Upgrade", "websocket") && r.Header.Get("Sec-WebSocket-Version") == version
}

// RequireHandshake is IsHandshake. If it returns false, it has set the headers of the
// response 426, which tell the client the requirements (section 4.2.2).
func RequireHandshake(w http.ResponseWriter, r *http.Request) bool {
	if IsHandshake(r) {
		return true
	}
	w.Header().Set("Sec-WebSocket-Version", version)
	if r.ProtoMajor == 1 { // HTTP/2 has no such headers
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
	}
	return false
}

// hasToken reports whether a comma-separated header contains the token.
func hasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
