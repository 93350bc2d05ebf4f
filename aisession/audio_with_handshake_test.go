package aisession_test

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
)

// TestAProviderThatSpeaksWithItsAnswer sends its first audio in one piece with
// the answer to the handshake, or the answer in crumbs: nothing is lost.
func TestAProviderThatSpeaksWithItsAnswer(t *testing.T) {
	media := aiprotocol.AppendMedia(nil, make([]byte, 1600))
	frame := append([]byte{0x81, 126, byte(len(media) >> 8), byte(len(media))}, media...)
	for name, piece := range map[string]int{"in one piece": 1 << 20, "in crumbs": 1, "cut in the audio": 400} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() { _ = listener.Close() })
			closed := make(chan int, 1)
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()

				r := bufio.NewReader(conn)
				request, err := http.ReadRequest(r)
				if err != nil {
					t.Error(err)
					return
				}

				sum := sha1.Sum(
					[]byte(request.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))

				answer := append(
					[]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "+
						base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n"), frame...)
				for len(answer) > 0 {
					n, err := conn.Write(answer[:min(piece, len(answer))])
					if err != nil {
						t.Error(err)
						return
					}
					answer = answer[n:]
				}

				for { // until a masked close
					first, err := r.ReadByte()
					second, err2 := r.ReadByte()
					if err != nil || err2 != nil {
						return
					}

					size := int(second & 0x7f)
					if size == 126 {
						high, _ := r.ReadByte()
						low, _ := r.ReadByte()
						size = int(high)<<8 | int(low)
					}

					if _, err := r.Discard(4 + size); err != nil {
						return
					}

					if first == 0x88 {
						closed <- size
						_, _ = conn.Write([]byte{0x88, 2, 3, 232})
						return
					}
				}
			}()

			h := startService(t, aisession.DefaultSettings(), nil)
			with := configOf(startProvider(t, 0, nil), "g711_ulaw")
			with.URL = "ws://" + listener.Addr().String()
			run := h.start(request(with, ulaw))
			until(t, "the audio to be played", func() bool {
				return strings.Contains(string(run.phone.playedAudio()), strings.Repeat("\x00", 1600))
			})
			run.end(t, "")

			if size := <-closed; size != len(websocket.FormatCloseMessage(1000, "")) {
				t.Errorf("a close of %d bytes", size)
			}
		})
	}
}
