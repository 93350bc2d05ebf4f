package aisession_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/aisession/pcmsocket"
)

// asteriskChannel does what chan_websocket of Asterisk 23.4 does with JSON control messages: it queues audio, plays
// 20 ms at a time, and reports marks when it comes to them.
type asteriskChannel struct {
	*websocket.Conn
	mu       sync.Mutex
	commands []string
	queue    []queuedItem
	played   int // bytes
	closed   string
}

// queuedItem is a frame, or a mark, which has no bytes.
type queuedItem struct {
	bytes int
	mark  string
}

func (c *asteriskChannel) read() {
	for {
		kind, raw, err := c.ReadMessage()
		c.mu.Lock()
		switch {
		case err != nil:
			c.closed = err.Error()
			c.mu.Unlock()
			return
		case kind == websocket.BinaryMessage:
			c.queue = append(c.queue, queuedItem{bytes: len(raw)})
		default:
			var m struct {
				Command string
				ID      string `json:"correlation_id"`
			}
			_ = json.Unmarshal(raw, &m)
			c.commands = append(c.commands, m.Command)

			switch m.Command {
			case "FLUSH_MEDIA":
				c.queue = nil
			case "MARK_MEDIA":
				c.queue = append(c.queue, queuedItem{mark: m.ID})
			}
		}
		c.mu.Unlock()
	}
}

// tick plays one frame.
func (c *asteriskChannel) tick() (marks []string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for len(c.queue) > 0 && c.queue[0].bytes == 0 {
		marks = append(marks, c.queue[0].mark)
		c.queue = c.queue[1:]
	}

	if len(c.queue) > 0 {
		c.played += c.queue[0].bytes
		c.queue = c.queue[1:]
	}

	return marks
}

func (c *asteriskChannel) has(command string) func() bool {
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return strings.Contains(strings.Join(c.commands, " "), command)
	}
}

func TestACallByAsterisksWebSocketChannel(t *testing.T) {
	p := startProvider(t, 0, nil)
	p.extensions = true
	h := startService(t, aisession.DefaultSettings(), p)
	with := configOf(p, "pcm16")
	with.Extensions = true
	ingress := pcmsocket.New(h, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = ingress.ServeMedia(w, r, with) }))
	defer server.Close()

	dialer := websocket.Dialer{Subprotocols: []string{"media"}}
	ws, _, err := dialer.Dial("ws"+strings.TrimPrefix(server.URL, "http")+"?callerIdNumber=%2B4930123", nil)
	if err != nil || ws.Subprotocol() != "media" {
		t.Fatal(err, ws.Subprotocol())
	}

	c := &asteriskChannel{Conn: ws}
	var writing sync.Mutex
	write := func(kind int, message []byte) {
		writing.Lock()
		defer writing.Unlock()
		_ = ws.WriteMessage(kind, message) // the end of the call closes it
	}

	say := func(text string) { write(websocket.TextMessage, []byte(text)) }
	say(`{"event":"MEDIA_START","connection_id":"c","channel":"WebSocket/c/0x1","channel_id":"1795672155.12","format":"ulaw","optimal_frame_size":160,"ptime":20,"channel_variables":{}}`)
	var reading, ticking sync.WaitGroup
	reading.Go(c.read)

	stop := make(chan struct{})
	ticking.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()

		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				for _, id := range c.tick() {
					say(`{"event":"MEDIA_MARK_PROCESSED","channel_id":"1795672155.12","correlation_id":"` + id + `"}`)
				}
				write(websocket.BinaryMessage, make([]byte, 160))
			}
		}
	})

	v := p.nextConnection()
	start := v.waitFor(t, "start", 1)
	if text := string(start.body); !strings.Contains(text, `"callId":"1795672155.12"`) ||
		!strings.Contains(text, `"callerIdNumber":"+4930123"`) {
		t.Errorf("start is %s", text)
	}

	until(t, "ANSWER", c.has("ANSWER"))
	_ = v.sendAudio(samples(24000, 300*time.Millisecond))
	_ = v.send(`{"event":"mark","mark":{"name":"m1"}}`)
	mark := v.waitFor(t, "mark", 1)
	c.mu.Lock()
	played := time.Duration(c.played) * time.Second / 8000
	c.mu.Unlock()

	if !strings.Contains(string(mark.body), `"playedMs":300`) || played < 300*time.Millisecond {
		t.Errorf("the mark %s came when Asterisk had played %v", mark.body, played)
	}

	_ = v.sendAudio(samples(24000, 5*time.Second))
	_ = v.send(`{"event":"mark","mark":{"name":"m2"}}`)
	_ = v.send(`{"event":"clear"}`)
	until(t, "FLUSH_MEDIA", c.has("FLUSH_MEDIA"))
	v.waitFor(t, "mark", 2)
	v.waitFor(t, "cleared", 1)
	say(`{"event":"DTMF_END","channel_id":"1795672155.12","digit":"7"}`)
	v.waitFor(t, "dtmf", 1)
	_ = v.send(`{"event":"hangup"}`)
	until(t, "HANGUP", c.has("HANGUP"))
	v.waitEnd(t)
	close(stop)
	ticking.Wait()
	_ = ws.Close()
	reading.Wait()
}
