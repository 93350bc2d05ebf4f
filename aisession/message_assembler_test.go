package aisession

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/wsframe"
)

// serverFrame is a frame as a server sends it.
func serverFrame(opcode byte, fin bool, payload []byte) []byte {
	b := wsframe.AppendHeader(nil, opcode, len(payload))
	if !fin {
		b[0] &^= wsframe.Fin
	}
	return append(b, payload...)
}

// recordedMessages records the messages that it receives.
type recordedMessages []string

func (h *recordedMessages) handleText(m []byte) { *h = append(*h, "text "+string(m)) }
func (h *recordedMessages) handleBinary([]byte) { *h = append(*h, "binary") }
func (h *recordedMessages) handlePing(d []byte) { *h = append(*h, "ping "+string(d)) }

// read takes bytes in pieces of a size.
func (h *recordedMessages) read(wire []byte, piece int) error {
	var m messageAssembler
	for part := range slices.Chunk(wire, piece) {
		if err := m.write(bytes.Clone(part), h); err != nil {
			return err
		}
	}
	return nil
}

func TestMessagesComeInAnyPieces(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 70000)
	wire := slices.Concat(
		serverFrame(wsframe.Text, true, []byte("one")),
		serverFrame(wsframe.Text, true, nil),
		serverFrame(wsframe.Text, false, []byte("tw")), serverFrame(wsframe.Ping, true, []byte("now")),
		serverFrame(wsframe.Continuation, true, []byte("o")),
		serverFrame(wsframe.Binary, false, []byte{1}), serverFrame(wsframe.Continuation, false, nil),
		serverFrame(wsframe.Continuation, true, []byte{2}),
		serverFrame(wsframe.Pong, true, []byte("ignored")),
		serverFrame(wsframe.Text, true, bytes.Repeat([]byte("y"), 300)),
		serverFrame(wsframe.Text, true, long),
		serverFrame(wsframe.Ping, true, nil),
		serverFrame(wsframe.Close, true, []byte{0x03, 0xe9, 'b', 'y', 'e'}),
	)
	want := recordedMessages{"text one", "text ", "ping now", "text two", "binary",
		"text " + string(bytes.Repeat([]byte("y"), 300)), "text " + string(long), "ping "}

	for _, piece := range []int{1, 2, 3, 7, 100, 4096, len(wire)} {
		var got recordedMessages
		err := got.read(wire, piece)
		var close *websocket.CloseError
		if !errors.As(err, &close) || close.Code != 1001 || !slices.Equal(got, want) {
			t.Errorf("in pieces of %d: %d messages, %v", piece, len(got), err)
		}
	}
}

func TestFramesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		wire []byte
		want error
	}{
		"masked":                 {[]byte{0x81, 0x81, 1, 2, 3, 4, 5}, errProtocol},
		"a reserved bit":         {[]byte{0xc1, 0}, errProtocol},
		"an unknown opcode":      {[]byte{0x83, 0}, errProtocol},
		"an unknown control":     {[]byte{0x8b, 0}, errProtocol},
		"a control in fragments": {[]byte{0x09, 0}, errProtocol},
		"a long control":         {serverFrame(wsframe.Ping, true, make([]byte, 126)), errProtocol},
		"nothing to continue":    {serverFrame(wsframe.Continuation, true, nil), errProtocol},
		"a message in a message": {slices.Concat(serverFrame(wsframe.Text, false, nil),
			serverFrame(wsframe.Text, true, nil)), errProtocol},
		"over the limit": {[]byte{0x81, 127, 0, 0, 0, 0, 0, 0x10, 0, 1}, websocket.ErrReadLimit},
		"a length without end": {[]byte{0x82, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			websocket.ErrReadLimit},
		"over the limit together": {slices.Concat(serverFrame(wsframe.Binary, false, make([]byte, readLimit)),
			serverFrame(wsframe.Continuation, true, []byte{1})), websocket.ErrReadLimit},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 1 << 20} {
				var got recordedMessages
				if err := got.read(c.wire, piece); !errors.Is(err, c.want) || len(got) > 0 {
					t.Errorf("got %v, %v", got, err)
				}
			}
		})
	}

	var got recordedMessages
	if err := got.read(serverFrame(wsframe.Text, true, make([]byte, readLimit)), 4096); err != nil || len(got) != 1 {
		t.Errorf("a message of just the limit: %v", err)
	}
}

// FuzzFrames reads the same bytes with this package and with gorilla, and compares the messages.
func FuzzFrames(f *testing.F) {
	f.Add(slices.Concat(serverFrame(wsframe.Text, false, []byte("tw")), serverFrame(wsframe.Ping, true, nil),
		serverFrame(wsframe.Continuation, true, []byte("o"))), uint8(3))
	f.Add(serverFrame(wsframe.Close, true, []byte{3, 232}), uint8(1))
	f.Add([]byte{0x81, 0x81, 1, 2, 3, 4, 5}, uint8(9))

	f.Fuzz(func(t *testing.T, wire []byte, piece uint8) {
		var ours, theirs recordedMessages
		_ = ours.read(wire, int(piece)+1)
		ws := gorilla(t, wire)
		ws.SetReadLimit(readLimit)
		ws.SetPingHandler(func(data string) error { theirs.handlePing([]byte(data)); return nil })

		for {
			kind, message, err := ws.ReadMessage()
			if err != nil {
				break
			}

			if kind == websocket.BinaryMessage {
				theirs.handleBinary(nil)
			} else {
				theirs.handleText(message)
			}
		}

		if !slices.Equal(ours, theirs) {
			t.Errorf("we heard %q, gorilla %q", fmt.Sprint(ours), fmt.Sprint(theirs))
		}
	})
}

// gorilla is a client's connection on which wire comes.
func gorilla(t *testing.T, wire []byte) *websocket.Conn {
	ws, _, err := (&websocket.Dialer{NetDial: func(string, string) (net.Conn, error) {
		return &canned{wire: wire},
			nil
	}}).Dial("ws://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

// canned answers a handshake; behind the answer comes wire.
type canned struct {
	net.Conn
	wire  []byte
	comes io.Reader
}

func (c *canned) Read(b []byte) (int, error)       { return c.comes.Read(b) }
func (c *canned) Close() error                     { return nil }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }

func (c *canned) Write(b []byte) (int, error) {
	if c.comes == nil {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
		if err != nil {
			return 0, err
		}

		sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		answer := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
			base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
		c.comes = io.MultiReader(strings.NewReader(answer), bytes.NewReader(c.wire))
	}

	return len(b), nil
}
