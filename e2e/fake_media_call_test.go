package e2e

import (
	"crypto/tls"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// mediaCall is a call over /media/v1, that sends a tone.
type mediaCall struct {
	*websocket.Conn
	mu          sync.Mutex
	loudSamples int         // loud samples that were received
	ended       chan string // gets the error with which the call ends
}

func (n *node) mediaCall(t *testing.T, provider string) *mediaCall {
	t.Helper()
	key := strings.TrimSpace(
		n.cli(t, "apikey", "create", "--account", "demo", "--name", "media-"+provider, "--scope", "calls"))
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: n.roots}}
	conn, _, err := dialer.Dial("wss"+strings.TrimPrefix(n.url, "https")+"/media/v1/"+provider+"?token="+key, nil)
	if err != nil {
		t.Fatal(err)
	}

	c := &mediaCall{Conn: conn, ended: make(chan string, 1)}
	if err := conn.WriteMessage(websocket.TextMessage,
		[]byte(`{"callId":"c1","callerIdNumber":"+4930123456"}`)); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() })
	go c.read()
	return c
}

func (c *mediaCall) read() {
	for {
		_, raw, err := c.ReadMessage()
		if err != nil {
			c.ended <- err.Error()
			return
		}

		loud := 0
		for i := 1; i < len(raw); i += 2 {
			if level := int8(raw[i]); level > 8 || level < -8 {
				loud++
			}
		}

		c.mu.Lock()
		c.loudSamples += loud
		c.mu.Unlock()
	}
}

// talk sends a square wave until the call ends or done says so.
func (c *mediaCall) talk(t *testing.T, done func() bool) {
	t.Helper()
	frame := []byte(strings.Repeat("\x00\x20\x00\x20\x00\xe0\x00\xe0", 40))
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the call goes on in vain")
		}
		if c.WriteMessage(websocket.BinaryMessage, frame) != nil {
			return
		}
	}
}

func (c *mediaCall) loudSampleCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.loudSamples
}

func (c *mediaCall) press(t *testing.T, key string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(`{"event":"dtmf","dtmf":{"digit":"`+key+`"}}`)); err != nil {
		t.Error(err)
	}
}
