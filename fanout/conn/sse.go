package conn

import (
	"bytes"
	"strconv"
)

// NewServerSentEvent returns a message as a server-sent event with the event id. A
// payload with line breaks takes one data line per line; the client joins them again.
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

// NewCloseComment returns a comment with the close code and reason.
func NewCloseComment(d Disconnect) *Frame {
	wire := append([]byte(": "), strconv.Itoa(d.Code)...)
	return &Frame{Wire: append(append(append(wire, ' '), d.Reason...), "\n\n"...)}
}
