package conn

import (
	"bytes"
	"testing"
)

func TestFramesOfTheWebSocketProtocol(t *testing.T) {
	for _, c := range []struct {
		name   string
		length int
		header []byte
	}{
		{"short", 125, []byte{0x81, 125}},
		{"16 bits", 126, []byte{0x81, 126, 0, 126}},
		{"largest with 16 bits", 65535, []byte{0x81, 126, 0xff, 0xff}},
		{"64 bits", 65536, []byte{0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
	} {
		var b Block
		b.Allocate(c.length + MaxHeader)
		payload := bytes.Repeat([]byte("x"), c.length)
		f := b.AppendMessage(7, payload)
		if !bytes.HasPrefix(f.Wire, c.header) || !bytes.Equal(f.Payload(), payload) || f.ID != 7 ||
			len(f.Wire) != len(c.header)+c.length {
			t.Errorf("%s: header % x", c.name, f.Wire[:10])
		}
	}

	long := NewClose(Disconnect{Code: 4008, Reason: string(bytes.Repeat([]byte("r"), 200))})
	if long.Wire[0] != 0x88 || len(long.Payload()) != 125 || long.ID != 0 {
		t.Errorf("close frame % x", long.Wire[:4])
	}
	if got := string(
		NewServerSentEvent(3, "cursor", []byte("a\nb\r\n")).Wire); got != "id: cursor\ndata: a\ndata: b\n\n" {
		t.Errorf("server-sent event %q", got)
	}
}
