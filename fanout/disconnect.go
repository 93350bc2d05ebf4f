package fanout

import (
	"slices"
	"strconv"
	"time"

	"trunkline/fanout/conn"
)

// The reasons for which the server ends a connection. On the wire the reason is
// followed by the id of the last event sent.
var (
	DisconnectNormal         = conn.Disconnect{Code: 1000, Reason: "closed by the client"}
	DisconnectSilent         = conn.Disconnect{Code: 1001, Reason: "no sign of life", Reconnect: true}
	DisconnectBroken         = conn.Disconnect{Code: 1006, Reason: "connection broken", Reconnect: true} // never sent
	DisconnectProtocolError  = conn.Disconnect{Code: 1008, Reason: "protocol error"}
	DisconnectClientMessages = conn.Disconnect{Code: 1008, Reason: "this channel takes no messages"}
	DisconnectEventsLost     = conn.Disconnect{Code: 1011, Reason: "events were lost upstream", Reconnect: true}
	DisconnectRestart        = conn.Disconnect{Code: 1012, Reason: "service restarts, come back", Reconnect: true}
	DisconnectRebalance      = conn.Disconnect{Code: 1012, Reason: "node has more than its share, come back", Reconnect: true}
	DisconnectTokenExpired   = conn.Disconnect{Code: 4001, Reason: "token expired"} // reconnect with a new token
	DisconnectAccessRevoked  = conn.Disconnect{Code: 4003, Reason: "access revoked"}
	DisconnectTooSlow        = conn.Disconnect{Code: 4008, Reason: "too slow", Reconnect: true}
	DisconnectReplaced       = conn.Disconnect{Code: 4009, Reason: "replaced by a newer connection"}
)

// closeWait bounds the write of a close frame to a full socket. drainWait
// bounds the reading of input after it was written, so that a TCP reset does
// not discard it.
const (
	closeWait = 5 * time.Second
	drainWait = time.Second
)

var disconnects = []conn.Disconnect{DisconnectNormal, DisconnectSilent, DisconnectBroken, DisconnectProtocolError,
	DisconnectEventsLost, DisconnectRestart, DisconnectRebalance, DisconnectTokenExpired, DisconnectAccessRevoked, DisconnectTooSlow, DisconnectReplaced}

// codeLabel returns the metric label of a close code: "other" for codes that
// only a peer sends.
func codeLabel(code int) string {
	if !slices.ContainsFunc(disconnects, func(d conn.Disconnect) bool { return d.Code == code }) {
		return "other"
	}
	return strconv.Itoa(code)
}
