package aisession

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"
)

// TestFramesAreReadByGorilla sends messages of every size of header to a server.
func TestFramesAreReadByGorilla(t *testing.T) {
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
		_, _ = client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	}()
	if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil {
		t.Fatal(err)
	}
	ws := <-upgraded
	for _, size := range []int{0, 1, 7, 8, 125, 126, 127, 1300, 65535, 65536, 100000} {
		payload := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		b := append(headerRoom(nil), payload...)
		from := seal(b, opText)
		go func() { _, _ = client.Write(b[from:]) }()
		kind, got, err := ws.ReadMessage()
		if err != nil || kind != websocket.TextMessage || !bytes.Equal(got, payload) {
			t.Fatalf("%d bytes came as %d, %v", size, len(got), err)
		}
	}
}

type hijacker struct{ net.Conn }

func (h hijacker) Header() http.Header { return http.Header{} }
func (h hijacker) WriteHeader(int)     {}
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.Conn, bufio.NewReadWriter(bufio.NewReader(h.Conn), bufio.NewWriter(h.Conn)), nil
}

func TestTheOutboxDropsTheOldestAudioAndNothingElse(t *testing.T) {
	o := newOutbox()
	put := func(name byte, audio bool) int {
		return o.put(frame{memory: append(o.begin()[:0], name), audio: audio})
	}
	put('s', false)
	for i := range maxMedia + 10 {
		want := 0
		if i >= maxMedia {
			want = 1
		}
		if got := put(byte(i), true); got != want {
			t.Fatalf("frame %d: %d dropped", i, got)
		}
	}
	for range maxOther - 1 {
		put('d', false)
	}
	if put('d', false) != 1 {
		t.Error("messages without end wait")
	}
	o.put(frame{memory: []byte{'c'}, last: true})
	if put('x', true) != 1 {
		t.Error("something comes after the last")
	}
	var got []byte
	for f, waiting := o.next(); waiting; f, waiting = o.next() {
		got = append(got, f.bytes()...)
	}
	if got[0] != 's' || got[1] != 10 || got[maxMedia] != maxMedia+9 || got[len(got)-1] != 'c' {
		t.Errorf("in order: %v … %v", got[:3], got[len(got)-3:])
	}
}
