package wsframe_test

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/internal/wsframe"
)

// TestGorillaReadsAClientsFrames sends messages of every size of header to a server.
func TestGorillaReadsAClientsFrames(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()

	upgraded := make(chan *websocket.Conn)
	go func() {
		r, _ := http.ReadRequest(bufio.NewReader(server))
		ws, err := (&websocket.Upgrader{}).Upgrade(hijacker{server}, r, nil)
		if err != nil {
			t.Error(err)
		}
		upgraded <- ws
	}()

	go func() {
		_, _ = client.Write(
			[]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	}()

	if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil {
		t.Fatal(err)
	}

	ws := <-upgraded
	for _, size := range []int{0, 1, 7, 8, 125, 126, 127, 1300, 65535, 65536, 100000} {
		payload := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		b := append(wsframe.BeginClientFrame(nil), payload...)
		from := wsframe.FinishClientFrame(b, wsframe.Text)
		go func() { _, _ = client.Write(b[from:]) }()
		kind, got, err := ws.ReadMessage()
		if err != nil || kind != websocket.TextMessage || !bytes.Equal(got, payload) {
			t.Fatalf("gorilla reads a message of %d bytes as %d bytes, %v", size, len(got), err)
		}
	}
}

type hijacker struct{ net.Conn }

func (h hijacker) Header() http.Header { return http.Header{} }
func (h hijacker) WriteHeader(int)     {}
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.Conn, bufio.NewReadWriter(bufio.NewReader(h.Conn), bufio.NewWriter(h.Conn)), nil
}

func TestParseHeaderReadsAppendHeader(t *testing.T) {
	for _, length := range []int{0, 1, 125, 126, 127, 1<<16 - 1, 1 << 16, 1 << 20} {
		wire := wsframe.AppendHeader(nil, wsframe.Text, length)
		h, complete, err := wsframe.ParseHeader(append(wire, "payload"...))
		if want := (wsframe.Header{Opcode: wsframe.Text, Fin: true, Size: len(wire),
			Length: uint64(length)}); err != nil || !complete || h != want {
			t.Errorf("length %d: %+v, complete %v, %v", length, h, complete, err)
		}

		for have := range wire {
			h, complete, err := wsframe.ParseHeader(wire[:have])
			if err != nil || complete || h.Size <= have || h.Size > len(wire) {
				t.Errorf("length %d, first %d bytes: needs %d, complete %v, %v", length, have, h.Size, complete, err)
			}
		}
	}
}

func TestParseHeaderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		wire []byte
		want error
	}{
		"reserved bits":       {[]byte{0xC1, 0}, wsframe.ErrReserved},
		"opcode 3":            {[]byte{0x83, 0}, wsframe.ErrReserved},
		"opcode 11":           {[]byte{0x8B, 0}, wsframe.ErrReserved},
		"a mask":              {[]byte{0x81, 0x80, 0, 0, 0, 0}, wsframe.ErrMasked},
		"a fragmented ping":   {[]byte{0x09, 0}, wsframe.ErrControl},
		"a ping of 126 bytes": {[]byte{0x89, 126, 0, 126}, wsframe.ErrControl},
	} {
		if _, _, err := wsframe.ParseHeader(c.wire); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCloseFrames(t *testing.T) {
	if got := wsframe.AppendClose(nil, 4008, "slow"); !bytes.Equal(got, websocket.FormatCloseMessage(4008, "slow")) {
		t.Errorf("close payload % x", got)
	}

	long := wsframe.AppendClose(nil, 1000, string(make([]byte, 200)))
	if len(long) != wsframe.MaxControl {
		t.Errorf("close payload of %d bytes", len(long))
	}
	if got := wsframe.CloseCode(long); got != 1000 {
		t.Errorf("close code %d", got)
	}
	if got := wsframe.CloseCode([]byte{1}); got != wsframe.CodeNone {
		t.Errorf("half a close code is %d", got)
	}
}
