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

// A provider written from the specification alone: it accepts the four events and their fields, and
// reports every deviation as an error.

type heardMessage struct {
	event string
	at    time.Time
	body  json.RawMessage
	audio []byte // of media
}

// visit is one connection to the provider.
type visit struct {
	*websocket.Conn
	header http.Header

	mu       sync.Mutex
	messages []heardMessage
	faults   []string
	closed   int // the close code; 0: none came
	writing  sync.Mutex
	done     chan struct{}
}

// provider is a server for visits. behave, if any, runs beside the reading of
// each.
type provider struct {
	t      *testing.T
	server *httptest.Server
	frame  int // bytes of a media message; 0: any
	visits chan *visit
	behave func(*visit)
	stall  chan struct{} // nothing is read until it is closed; nil: at once

	mu     sync.Mutex
	refuse int // HTTP status of the next handshakes; 0: none
	extras bool
}

func startProvider(t *testing.T, frame int, behave func(*visit)) *provider {
	p := &provider{t: t, frame: frame, behave: behave, visits: make(chan *visit, 64)}
	p.server = httptest.NewTLSServer(p)
	t.Cleanup(p.server.Close)
	return p
}

func (p *provider) url() string {
	return "wss" + strings.TrimPrefix(p.server.URL, "https") + "/session"
}

func (p *provider) refuses(status int) {
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
	v := &visit{Conn: conn, header: r.Header, done: make(chan struct{})}
	p.visits <- v
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
	v.read(p.frame, p.extras)
}

// visit waits for the next connection.
func (p *provider) visit() *visit {
	p.t.Helper()
	select {
	case v := <-p.visits:
		return v
	case <-time.After(patience):
		p.t.Fatal("no connection to the provider")
		return nil
	}
}

func (v *visit) read(frame int, extras bool) {
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
		v.take(raw, frame, extras)
		v.mu.Unlock()
	}
}

func (v *visit) fault(format string, args ...any) {
	if len(v.faults) < 10 {
		v.faults = append(v.faults, fmt.Sprintf(format, args...))
	}
}

// take checks one message.
func (v *visit) take(raw []byte, frame int, extras bool) {
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
	m := heardMessage{event: event, at: time.Now(), body: message[event]}
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
		v.strictly(m.body, &start)
		if start.CallID == nil || start.OtherLegCallID == nil || start.CallerIDNumber == nil || start.CalleeIDNumber == nil ||
			start.AccountID == nil || start.MediaFormat == nil || start.MediaFormat.Encoding == nil || start.MediaFormat.SampleRate == nil {
			v.fault("start lacks a field: %s", m.body)
		} else if rates := map[string]float64{"pcm16": 24000, "g711_ulaw": 8000, "opus": 48000}; rates[*start.MediaFormat.Encoding] != *start.MediaFormat.SampleRate {
			v.fault("a format that is none: %s", m.body)
		}
	case "media":
		var media struct {
			Payload *string `json:"payload"`
		}
		v.strictly(m.body, &media)
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
		v.strictly(m.body, &dtmf)
		if dtmf.CallID == nil || dtmf.OtherLegCallID == nil || dtmf.Digit == nil || len(*dtmf.Digit) != 1 || !strings.Contains("0123456789*#ABCD", *dtmf.Digit) {
			v.fault("dtmf: %s", m.body)
		}
	case "hangup":
		var hangup struct {
			CallID         *string `json:"callId"`
			OtherLegCallID *string `json:"otherLegCallId"`
			Reason         *string `json:"reason"`
		}
		v.strictly(m.body, &hangup)
		if hangup.CallID == nil || hangup.OtherLegCallID == nil {
			v.fault("hangup lacks a field: %s", m.body)
		}
	case "mark", "cleared", "transfer":
		if !extras {
			v.fault("an event that is not the specification's: %s", event)
		}
	default:
		v.fault("an event that is not the specification's: %s", event)
	}
	v.messages = append(v.messages, m)
}

func (v *visit) checkOrder(event string) {
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

func (v *visit) strictly(raw []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		v.fault("%v: %.120q", err, raw)
	}
}

// say sends a message.
func (v *visit) say(text string) error {
	v.writing.Lock()
	defer v.writing.Unlock()
	return v.WriteMessage(websocket.TextMessage, []byte(text))
}

func (v *visit) sayAudio(audio []byte) error {
	return v.say(`{"event":"media","media":{"payload":"` + base64.StdEncoding.EncodeToString(audio) + `"}}`)
}

// heard returns the messages so far.
func (v *visit) heard() []heardMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]heardMessage(nil), v.messages...)
}

// waitFor waits until n messages of an event have come and gives the last.
func (v *visit) waitFor(t *testing.T, event string, n int) heardMessage {
	t.Helper()
	var last heardMessage
	until(t, fmt.Sprintf("%d %s messages", n, event), func() bool {
		count := 0
		for _, m := range v.heard() {
			if m.event == event {
				count++
				last = m
			}
		}
		return count >= n
	})
	return last
}

// ended waits for the connection's end and checks its messages.
func (v *visit) ended(t *testing.T) []heardMessage {
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

// farewell is ended for a session that ends as it should.
func (v *visit) farewell(t *testing.T, reason string) []heardMessage {
	t.Helper()
	messages := v.ended(t)
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
const patience = time.Minute

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
