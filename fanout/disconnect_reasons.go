package fanout

import "trunkline/fanout/conn"

// The reasons for which the server ends a connection. On the wire the reason is
// followed by the id of the last event sent.
var (
	// DisconnectNormal answers a close frame of the client, which need do nothing.
	DisconnectNormal = conn.Disconnect{Code: 1000, Reason: "closed by the client"}
	// DisconnectComplete ends a stream that asked for the past alone: everything is sent.
	DisconnectComplete = conn.Disconnect{Code: 1000, Reason: "complete"}
	// DisconnectSilent is issued when the client has sent nothing for fanout.idle_timeout,
	// not even a pong; a client that sees it should reconnect and resume.
	DisconnectSilent = conn.Disconnect{Code: 1001, Reason: "no sign of life", Reconnect: true}
	// DisconnectBroken is never sent: it counts connections that ended without a close
	// frame, whose clients should reconnect and resume.
	DisconnectBroken = conn.Disconnect{Code: 1006, Reason: "connection broken", Reconnect: true}
	// DisconnectProtocolError is issued when a frame breaks RFC 6455; the client has to be
	// corrected before it reconnects.
	DisconnectProtocolError = conn.Disconnect{Code: 1008, Reason: "protocol error"}
	// DisconnectClientMessages is issued when the client sends more messages than are
	// ignored; it has to stop sending them before it reconnects.
	DisconnectClientMessages = conn.Disconnect{Code: 1008, Reason: "this channel takes no messages"}
	// DisconnectEventsLost is issued when the log no longer has events that the client
	// should get; it should reconnect, and take a snapshot if its resume is refused.
	DisconnectEventsLost = conn.Disconnect{Code: 1011, Reason: "events were lost upstream", Reconnect: true}
	// DisconnectRestart is issued when the node shuts down; the client should reconnect at
	// once, with jitter, and resume.
	DisconnectRestart = conn.Disconnect{Code: 1012, Reason: "service is restarting, reconnect", Reconnect: true}
	// DisconnectRebalance is issued when the node has more connections than its share; the
	// client should reconnect at once, with jitter, and resume.
	DisconnectRebalance = conn.Disconnect{Code: 1012, Reason: "node has more than its share of connections, reconnect",
		Reconnect: true}
	// DisconnectTokenExpired is issued when the token expires; the client should log in,
	// reconnect with the new token, and resume.
	DisconnectTokenExpired = conn.Disconnect{Code: 4001, Reason: "token expired"}
	// DisconnectAccessRevoked is issued when the token, its user or its key is revoked or
	// may see none of its accounts; the client should not reconnect with this token.
	DisconnectAccessRevoked = conn.Disconnect{Code: 4003, Reason: "access revoked"}
	// DisconnectTooSlow is issued when the client reads so slowly that its queue is full;
	// it should reconnect and resume, and read faster or filter more.
	DisconnectTooSlow = conn.Disconnect{Code: 4008, Reason: "too slow", Reconnect: true}
	// DisconnectReplaced is issued when a newer connection of the same user takes its place
	// (on_limit: replace); the client should not reconnect.
	DisconnectReplaced = conn.Disconnect{Code: 4009, Reason: "replaced by a newer connection"}
)
