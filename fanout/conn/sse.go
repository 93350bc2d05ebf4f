package conn

import (
	"bytes"
	"strconv"
)

// NewServerSentEvent is a message as a server-sent event with the event id. A
// payload with line breaks takes one data line each, which the client joins
// again.
func NewServerSentEvent(id int64, eventID string, payload []byte) *Frame {
	wire := append([]byte("id: "), eventID...)
	for line := range bytes.Lines(payload) {
		wire = append(wire, "\ndata: "...)
		wire = append(wire, bytes.TrimRight(line, "\r\n")...)
	}
	return &Frame{Wire: append(wire, "\n\n"...), ID: id}
}

// Comment is an empty comment of a stream of server-sent events, which keeps the
// connection alive.
var Comment = &Frame{Wire: []byte(":\n\n")}

// NewCloseComment says in a comment why a stream of server-sent events ends.
func NewCloseComment(d Disconnect) *Frame {
	wire := append([]byte(": "), strconv.Itoa(d.Code)...)
	return &Frame{Wire: append(append(append(wire, ' '), d.Reason...), "\n\n"...)}
}
