package aisession_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/fault"
)

// vendor stands for the service of a company, of any protocol: it records what it gets, by the member that
// names a message. A provider of these tests speaks Trunkline's own protocol.
type vendor struct {
	t       *testing.T
	server  *httptest.Server
	accepts chan *vendorConnection
}

type vendorConnection struct {
	*websocket.Conn
	request *http.Request

	mu    sync.Mutex
	texts []map[string]any
	audio int // bytes in binary frames
	done  chan struct{}
}

func startVendor(t *testing.T) *vendor {
	v := &vendor{t: t, accepts: make(chan *vendorConnection, 8)}
	v.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}

		c := &vendorConnection{Conn: conn, request: r, done: make(chan struct{})}
		v.accepts <- c
		c.read()
	}))

	t.Cleanup(v.server.Close)
	return v
}

func (c *vendorConnection) read() {
	defer close(c.done)
	defer c.Close()

	for {
		kind, raw, err := c.ReadMessage()
		if err != nil {
			return
		}

		c.mu.Lock()
		if kind == websocket.BinaryMessage {
			c.audio += len(raw)
		} else {
			var m map[string]any
			_ = json.Unmarshal(raw, &m)
			c.texts = append(c.texts, m)
		}
		c.mu.Unlock()
	}
}

// named waits for a message whose event or type has the name.
func (c *vendorConnection) named(t *testing.T, name string) (found map[string]any) {
	t.Helper()
	until(t, name, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()

		for _, m := range c.texts {
			if m["event"] == name || m["type"] == name {
				found = m
				return true
			}
		}

		return false
	})

	return found
}

func (c *vendorConnection) say(t *testing.T, text string) {
	t.Helper()
	if err := c.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Error(err)
	}
}

// startWithVendor starts a session with a vendor, and returns when the vendor has accepted its connection.
func startWithVendor(t *testing.T, protocol string,
	change func(*aiprovider.Provider)) (*testEnv, *runningSession, *vendorConnection) {
	t.Helper()
	v := startVendor(t)
	h := startService(t, aisession.DefaultSettings(), &provider{server: v.server})
	p := configOf(&provider{server: v.server}, aiprotocol.ULaw)
	p.Protocol, p.Secret, p.Headers = protocol, "secret-1", nil

	if change != nil {
		change(&p)
	}

	r := request(p, ulaw)
	r.Parameters = map[string]string{"X-Customer": "7"}
	run := h.start(r)

	return h, run, <-v.accepts
}

// loud returns so many bytes of loud mu-law in base64.
func loud(bytes int) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", bytes)))
}

// played waits until the caller has heard some of what a vendor says.
func (r *runningSession) played(t *testing.T) {
	t.Helper()
	until(t, "the vendor's audio",
		func() bool { return strings.Contains(string(r.phone.playedAudio()), strings.Repeat("\x00", 160)) })
}

func TestABotOfTwiliosHasItsCall(t *testing.T) {
	h, run, bot := startWithVendor(t, dialect.Twilio, nil)
	if bot.request.Header.Get("X-Twilio-Signature") == "" {
		t.Error("the handshake has no signature")
	}

	start := bot.named(t, "start")["start"].(map[string]any)
	callSID := start["callSid"].(string)
	if start["customParameters"].(map[string]any)["X-Customer"] != "7" || !strings.HasPrefix(callSID, "CA") {
		t.Errorf("start is %v", start)
	}

	bot.named(t, "media")
	run.ReceiveDTMF('5', 0)
	bot.named(t, "dtmf")

	bot.say(t, `{"event":"media","streamSid":"x","media":{"payload":"`+loud(80000)+`"}}`)
	bot.say(t, `{"event":"mark","streamSid":"x","mark":{"name":"end"}}`)
	run.played(t)
	bot.say(t, `{"event":"clear","streamSid":"x"}`)
	bot.named(t, "mark")

	update := aisession.CallUpdate{CallSID: callSID, SecretSHA256: aisession.SecretSHA256("other"), Destination: "7000"}
	if err := h.UpdateCall(t.Context(), update); fault.KindOf(err) != fault.KindUnauthenticated {
		t.Errorf("another secret: %v", err)
	}

	update.SecretSHA256 = aisession.SecretSHA256("secret-1")
	if err := h.UpdateCall(t.Context(), update); err != nil {
		t.Error(err)
	}
	if e := run.wait(t); e.Reason != aisession.Transferred || run.phone.transfers[0] != "7000" {
		t.Errorf("ended with %+v after transfers to %v", e, run.phone.transfers)
	}

	bot.named(t, "stop")
	if err := h.UpdateCall(t.Context(), update); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("an update after the end: %v", err)
	}
}

func TestABotOfTwiliosEndsItsCallByClosing(t *testing.T) {
	h, run, bot := startWithVendor(t, dialect.Twilio,
		func(p *aiprovider.Provider) { p.Fallback = aiprovider.FallbackReturn })
	bot.named(t, "start")
	if err := bot.WriteMessage(websocket.CloseMessage,
		websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")); err != nil {
		t.Fatal(err)
	}
	if e := run.wait(t); e.Reason != aisession.ProviderHungUp || !e.ReturnToDialplan {
		t.Errorf("ended with %+v", e)
	}
	if n := h.metric("trunkline_aisession_reconnects_total"); n != 0 {
		t.Errorf("%v reconnects", n)
	}
}

func TestOpenAIIsInterruptedAndTransfersAfterItsWords(t *testing.T) {
	h, run, model := startWithVendor(t, dialect.OpenAIRealtime,
		func(p *aiprovider.Provider) { p.Session = []byte(`{"model":"m1","instructions":"x"}`) })
	if model.request.URL.Query().Get("model") != "m1" ||
		model.request.Header.Get("Authorization") != "Bearer secret-1" {
		t.Errorf("handshake with %s, %q", model.request.URL, model.request.Header)
	}

	session := model.named(t, "session.update")["session"].(map[string]any)
	if session["instructions"] != "x" || session["type"] != "realtime" {
		t.Errorf("session.update has %v", session)
	}

	model.named(t, "input_audio_buffer.append")
	model.say(t, `{"type":"response.output_audio.delta","item_id":"i1","delta":"`+loud(80000)+`"}`)
	run.played(t)
	model.say(t, `{"type":"input_audio_buffer.speech_started","item_id":"i2"}`)
	cut := model.named(t, "conversation.item.truncate")
	if ms := cut["audio_end_ms"].(float64); cut["item_id"] != "i1" || ms < 20 || ms > 9000 {
		t.Errorf("truncates %v", cut)
	}

	before := len(run.phone.playedAudio())
	model.say(t, `{"type":"response.output_audio.delta","item_id":"i3","delta":"`+loud(4000)+`"}`)
	model.say(t, `{"type":"response.output_item.done","item":{"type":"function_call","status":"completed","call_id":"c","name":"transfer","arguments":"{\"destination\":\"7000\"}"}}`)

	if e := run.wait(t); e.Reason != aisession.Transferred || run.phone.transfers[0] != "7000" {
		t.Errorf("ended with %+v", e)
	}
	if heard := strings.Count(string(run.phone.playedAudio()[before:]), "\x00"); heard < 4000 {
		t.Errorf("the caller heard %d of 4000 bytes before the transfer", heard)
	}
	if n := h.metric("trunkline_aisession_ignored_messages_total", "problem", "unknown_event"); n != 0 {
		t.Errorf("%v unknown messages", n)
	}
}

func TestDeepgramSpeaksBinaryAndHangsUp(t *testing.T) {
	h, run, agent := startWithVendor(t, dialect.DeepgramAgent,
		func(p *aiprovider.Provider) { p.Session = []byte(`{"agent":{"greeting":"Hi"}}`) })
	if settings := agent.named(t, "Settings"); settings["agent"].(map[string]any)["greeting"] != "Hi" {
		t.Errorf("Settings is %v", settings)
	}

	until(t, "the caller's audio", func() bool {
		agent.mu.Lock()
		defer agent.mu.Unlock()
		return agent.audio > 1600
	})

	speak := func(bytes int) {
		if err := agent.WriteMessage(websocket.BinaryMessage, []byte(strings.Repeat("\x00", bytes))); err != nil {
			t.Error(err)
		}
	}

	speak(80000)
	run.played(t)
	agent.say(t, `{"type":"UserStartedSpeaking"}`)
	agent.say(t, `{"type":"Error","description":"model is away","code":"X"}`)
	agent.say(t, `{"type":"FunctionCallRequest","functions":[{"id":"f","name":"hangup","arguments":"{}","client_side":true}]}`)

	if e := run.wait(t); e.Reason != aisession.ProviderHungUp {
		t.Errorf("ended with %+v", e)
	}
	if n := len(run.phone.playedAudio()); n > 80000 {
		t.Errorf("%d bytes were played in spite of the interruption", n)
	}
	if n := h.metric("trunkline_aisession_ignored_messages_total", "problem", "reported"); n != 1 {
		t.Errorf("%v reported problems are counted", n)
	}
}
