package aisession_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// A provider written from docs/ai.md alone: it accepts the four events and their fields, and
// reports every deviation as an error.

type receivedMessage struct {
	event string
	at    time.Time
	body  json.RawMessage
	audio []byte // of media
}

// fakeConnection is one connection to the provider.
type fakeConnection struct {
	*websocket.Conn
	header http.Header

	mu       sync.Mutex
	messages []receivedMessage
	faults   []string
	closed   int // the close code; 0: none came
	writing  sync.Mutex
	done     chan struct{}
}

// provider is a WebSocket server. behave, if set, runs beside the reading of each
// connection.
type provider struct {
	t           *testing.T
	server      *httptest.Server
	frame       int // bytes of a media message; 0: any
	connections chan *fakeConnection
	behave      func(*fakeConnection)
	stall       chan struct{} // nothing is read until it is closed; nil: at once

	mu         sync.Mutex
	refuse     int // HTTP status of the next handshakes; 0: none
	extensions bool
}

func startProvider(t *testing.T, frame int, behave func(*fakeConnection)) *provider {
	p := &provider{t: t, frame: frame, behave: behave, connections: make(chan *fakeConnection, 64)}
	p.server = httptest.NewTLSServer(p)
	t.Cleanup(p.server.Close)
	return p
}

func (p *provider) url() string {
	return "wss" + strings.TrimPrefix(p.server.URL, "https") + "/session"
}

func (p *provider) setRefusal(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = status
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	refuse := p.refuse
	p.mu.Unlock()

	if refuse != 0 {
		w.Header().Set("Location", "https://10.0.0.1/")
		w.WriteHeader(refuse)
		return
	}

	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}

	v := &fakeConnection{Conn: conn, header: r.Header, done: make(chan struct{})}
	p.connections <- v
	var behaving sync.WaitGroup
	defer behaving.Wait()
	defer close(v.done)
	defer conn.Close()

	if p.behave != nil {
		behaving.Go(func() { p.behave(v) })
	}
	if p.stall != nil {
		<-p.stall
	}

	v.read(p.frame, p.extensions)
}

// nextConnection waits for the next connection.
func (p *provider) nextConnection() *fakeConnection {
	p.t.Helper()
	select {
	case v := <-p.connections:
		return v
	case <-time.After(patience):
		p.t.Fatal("no connection to the provider")
		return nil
	}
}

func (v *fakeConnection) read(frame int, extras bool) {
	for {
		kind, raw, err := v.ReadMessage()
		if err != nil {
			v.mu.Lock()
			if closed, ok := err.(*websocket.CloseError); ok {
				v.closed = closed.Code
			}
			v.mu.Unlock()
			return
		}

		v.mu.Lock()
		if kind != websocket.TextMessage {
			v.fault("a frame that is no text")
		}

		v.checkMessage(raw, frame, extras)
		v.mu.Unlock()
	}
}

func (v *fakeConnection) fault(format string, args ...any) {
	if len(v.faults) < 10 {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// checkMessage checks one message.
func (v *fakeConnection) checkMessage(raw []byte, frame int, extras bool) {
	var message map[string]json.RawMessage
	if err := json.Unmarshal(raw, &message); err != nil {
		v.fault("no JSON object: %.80q", raw)
		return
	}

	var event string
	if err := json.Unmarshal(message["event"], &event); err != nil {
		v.fault("no event: %.80q", raw)
		return
	}

	m := receivedMessage{event: event, at: time.Now(), body: message[event]}
	if len(message) != 2 || m.body == nil {
		v.fault("members beside event and its object: %.120q", raw)
		return
	}

	v.checkOrder(event)
	switch event {
	case "start":
		var start struct {
			CallID         *string `json:"callId"`
			OtherLegCallID *string `json:"otherLegCallId"`
			CallerIDNumber *string `json:"callerIdNumber"`
			CalleeIDNumber *string `json:"calleeIdNumber"`
			AccountID      *string `json:"accountId"`
			MediaFormat    *struct {
				Encoding   *string  `json:"encoding"`
				SampleRate *float64 `json:"sampleRate"`
			} `json:"mediaFormat"`
		}
		v.decodeStrict(m.body, &start)

		if start.CallID == nil || start.OtherLegCallID == nil || start.CallerIDNumber == nil ||
			start.CalleeIDNumber == nil ||
			start.AccountID == nil || start.MediaFormat == nil || start.MediaFormat.Encoding == nil ||
			start.MediaFormat.SampleRate == nil {
			v.fault("start lacks a field: %s", m.body)
		} else if rates := map[string]float64{"pcm16": 24000, "g711_ulaw": 8000,
			"opus": 48000}; rates[*start.MediaFormat.Encoding] != *start.MediaFormat.SampleRate {
			v.fault("a format that is none: %s", m.body)
		}
	case "media":
		var media struct {
			Payload *string `json:"payload"`
		}
		v.decodeStrict(m.body, &media)

		if media.Payload == nil {
			v.fault("media lacks a payload")
			break
		}

		audio, err := base64.StdEncoding.Strict().DecodeString(*media.Payload)
		if err != nil || len(audio) == 0 || frame != 0 && len(audio) != frame {
			v.fault("a payload of %d bytes, %v", len(audio), err)
		}

		m.audio = audio
	case "dtmf":
		var dtmf struct {
			CallID         *string  `json:"callId"`
			OtherLegCallID *string  `json:"otherLegCallId"`
			Digit          *string  `json:"digit"`
			Duration       *float64 `json:"duration"`
		}
		v.decodeStrict(m.body, &dtmf)

		if dtmf.CallID == nil || dtmf.OtherLegCallID == nil || dtmf.Digit == nil || len(*dtmf.Digit) != 1 ||
			!strings.Contains("0123456789*#ABCD", *dtmf.Digit) {
			v.fault("dtmf: %s", m.body)
		}
	case "hangup":
		var hangup struct {
			CallID         *string `json:"callId"`
			OtherLegCallID *string `json:"otherLegCallId"`
			Reason         *string `json:"reason"`
		}
		v.decodeStrict(m.body, &hangup)

		if hangup.CallID == nil || hangup.OtherLegCallID == nil {
			v.fault("hangup lacks a field: %s", m.body)
		}
	case "mark", "cleared", "transfer", "error":
		if !extras {
			v.fault("an unknown event: %s", event)
		}
	default:
		v.fault("an unknown event: %s", event)
	}

	v.messages = append(v.messages, m)
}

func (v *fakeConnection) checkOrder(event string) {
	n := len(v.messages)
	switch {
	case event == "start" && n > 0:
		v.fault("a second start")
	case event != "start" && n == 0:
		v.fault("%s before start", event)
	case n > 0 && v.messages[n-1].event == "hangup":
		v.fault("%s after hangup", event)
	}
}

func (v *fakeConnection) decodeStrict(raw []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		v.fault("%v: %.120q", err, raw)
	}
}

// send sends a message.
func (v *fakeConnection) send(text string) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	return v.WriteMessage(websocket.TextMessage, []byte(text))
}

func (v *fakeConnection) sendAudio(audio []byte) error {
	return v.send(`{"event":"media","media":{"payload":"` + base64.StdEncoding.EncodeToString(audio) + `"}}`)
}

// received returns the messages so far.
func (v *fakeConnection) received() []receivedMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]receivedMessage(nil), v.messages...)
}

// waitFor waits until n messages of an event have come and gives the last.
func (v *fakeConnection) waitFor(t *testing.T, event string, n int) receivedMessage {
	t.Helper()
	var last receivedMessage
	until(t, fmt.Sprintf("%d %s messages", n, event), func() bool {
		count := 0
		for _, m := range v.received() {
			if m.event == event {
				count++
				last = m
			}
		}

		return count >= n
	})

	return last
}

// waitEnd waits for the connection's end and checks its messages.
func (v *fakeConnection) waitEnd(t *testing.T) []receivedMessage {
	t.Helper()
	select {
	case <-v.done:
	case <-time.After(patience):
		t.Fatal("the connection continues")
	}

	v.mu.Lock()
	defer v.mu.Unlock()

	for _, f := range v.faults {
		t.Errorf("the provider objects: %s", f)
	}

	return v.messages
}

// waitHangup waits for the end of a session and checks that its last message is a hangup with the reason.
func (v *fakeConnection) waitHangup(t *testing.T, reason string) []receivedMessage {
	t.Helper()
	messages := v.waitEnd(t)
	last := messages[len(messages)-1]
	var hangup struct {
		Reason string `json:"reason"`
	}
	if last.event != "hangup" || json.Unmarshal(last.body, &hangup) != nil || hangup.Reason != reason {
		t.Errorf("the last message is %s %s, want a hangup with %s", last.event, last.body, reason)
	}
	if v.closed != websocket.CloseNormalClosure {
		t.Errorf("closed with %d, want 1000", v.closed)
	}

	return messages
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
