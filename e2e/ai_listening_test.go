package e2e

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// transcript is data of an event call.transcript, and of ai.session.
type transcript struct {
	Event, State, Track, Text string
	Final                     bool
	CallID                    string `json:"call_id"`
	SessionID                 string `json:"session_id"`
	OriginationCallID         string `json:"origination_call_id"`
}

func (e event) transcript() (said transcript) {
	_ = json.Unmarshal(e.Data, &said) // the events of others have other data
	return said
}

// addListener has a provider that listens hear a call, once it is connected.
func (n *node) addListener(t *testing.T, callID, provider string) (sessionID string) {
	t.Helper()
	var begun struct {
		SessionID string `json:"session_id"`
	}

	header := map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON}
	for name, value := range n.dialler(t, "admin").header {
		header[name] = value
	}

	eventually(t, "the call to be heard", func() error {
		a := n.mustCall(t, http.MethodPost, "/api/v2/calls/"+callID+"/listeners", header,
			fmt.Sprintf(`{"provider_id":%q}`, provider))
		if a.status != http.StatusCreated {
			return errors.New(a.String())
		}
		return json.Unmarshal(a.body, &begun)
	})

	return begun.SessionID
}

// wasTranscribed reports whether words of a track were recognised in a session of a listener.
func wasTranscribed(events []event, session, track, words string) bool {
	return slices.ContainsFunc(events, func(e event) bool {
		s := e.transcript()
		return s.Event == "call.transcript" && s.SessionID == session && s.Track == track && s.Final &&
			strings.Contains(s.Text, words)
	})
}

// TestARealRecogniserHearsPhonesAndBots has pocketsphinx hear two phones from Debian that speak with espeak-ng; then a
// bot written for Twilio answers one of them, is interrupted, and transfers it to the other.
func TestARealRecogniserHearsPhonesAndBots(t *testing.T) {
	t.Parallel()
	tool(t, "espeak-ng")
	if !inNetworkNamespace(t, botFolder+"="+installed(t, botPackages)) {
		return
	}

	n := newNode(t, "listen", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS": "127.0.0.0/8",
	})
	n.start(t)
	registered := n.registrations(t)
	channel := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("admin").types("AGENT_CUSTOM_EVENT"))})
	unseen := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("bob").types("AGENT_CUSTOM_EVENT"))})
	sphinx, port := startBot(t, "sphinx.py", nil)
	listener := n.configure(t,
		`{"name":"ears","mode":"listen","media":{"audioFormat":"pcm16","sampleRate":24000},"websocket":{"url":"ws://127.0.0.1:`+port+`/"}}`)
	alice := n.newSpeaker(t, "alice", "1001", 5071, "where is my parcel")
	n.newSpeaker(t, "bob", "1002", 5081, "good morning, how can I help")
	registered(2)

	d := n.dialler(t, "alice")
	id := d.dial(t, "1002")
	d.await(t, id, "bridged")

	session := n.addListener(t, id, listener)
	channel.await(t, "the words of both phones", func(events []event) bool {
		return wasTranscribed(events, session, "caller", "where is my parcel") &&
			wasTranscribed(events, session, "callee", "how can i help")
	})

	for _, e := range channel.events() {
		s := e.transcript()
		if s.Event == "call.transcript" &&
			(s.OriginationCallID != id || s.Track == "caller" && strings.Contains(s.Text, "morning")) {
			t.Errorf("%s", e.Data)
		}
	}

	alice.command(t, "hangup", "")
	d.await(t, id, "ended")
	sphinx.awaitLine(t, "hears 1001 1002")
	sphinx.awaitLine(t, "end")

	bot, port := startBot(t, "twilio_pipecat.py", map[string]string{
		"TOKEN": "bot-secret-1", "REST": n.url, "SSL_CERT_FILE": filepath.Join(n.dir, "tls", "cert.pem"),
		"REQUESTS_CA_BUNDLE": filepath.Join(n.dir, "tls", "cert.pem"),
	})
	twilio := n.createBot(t, "twilio", "ws://127.0.0.1:"+port+"/media", `{"bot":"sales","queue":"1002"}`)
	alice.command(t, "dial", "sip:ai-"+twilio+"@127.0.0.1")
	bot.awaitLine(t, "connected sales 1001")

	var call transcript
	channel.await(t, "the bot's session", func(events []event) bool {
		return slices.ContainsFunc(events, func(e event) bool {
			call = e.transcript()
			return call.Event == "ai.session" && call.CallID != "" && strings.Contains(string(e.Data), twilio)
		})
	})

	session = n.addListener(t, call.CallID, listener)
	channel.await(t, "the caller's words, and the bot's echo", func(events []event) bool {
		return wasTranscribed(events, session, "caller", "where is my parcel") &&
			wasTranscribed(events, session, "callee", "where is my parcel")
	})

	alice.press(t, "1")
	bot.awaitLine(t, "key 1")
	alice.press(t, "3")
	bot.awaitLine(t, "key 3")
	bot.awaitLine(t, "stop")

	channel.await(t, "the transfer", func(events []event) bool {
		return slices.ContainsFunc(events,
			func(e event) bool { return strings.Contains(string(e.Data), `"reason":"transferred"`) })
	})

	for _, e := range unseen.events() {
		if e.transcript().Event == "call.transcript" {
			t.Errorf("a user sees %s", e.Data)
		}
	}

	if log := readFile(t, n.log); strings.Contains(log, "my parcel") {
		t.Error("the log has what was said")
	}

	out, _ := sphinx.lines()
	t.Logf("the recogniser: %s", strings.Join(out, "; "))
}

// TestEveryCallOfAQueueIsListenedTo has a switch connect an agent with the caller of a queue: without an action of a
// person it is told to send both voices, and does as its module would; what the listener writes is an event with the
// queue and the agent of the call. A second listener is then begun by hand.
func TestEveryCallOfAQueueIsListenedTo(t *testing.T) {
	t.Parallel()
	bot := listeningBot(t)
	pbx := newScriptedSwitch(t)
	entry := pbx.feedEntry(switchPassword, 1)
	n := newNode(t, "rules", nil)
	entry["listen_by"] = "uuid_audio_stream {call} start wss" + strings.TrimPrefix(n.url, "https") +
		"/media/v1/{provider}?token=KEY stereo 8k {metadata}"
	n.settings["TRUNKLINE_DEMO_PASSWORD"] = password
	n.settings["TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS"] = "127.0.0.0/8"
	n.settings["TRUNKLINE_FEEDS"] = feedSettings(t, entry)
	n.start(t)
	n.awaitFeeds(t, 1)
	// The switch's tables have no calls: a resync that came behind the events would end the call.
	eventually(t, "the first resync", func() error {
		if !strings.Contains(readFile(t, n.log), `msg="resync done"`) {
			return errors.New("it is not done")
		}
		return nil
	})

	key := strings.TrimSpace(n.cli(t, "apikey", "create", "--account", "demo", "--name", "switch", "--scope", "calls"))
	channel := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("admin").types("AGENT_CUSTOM_EVENT"))})
	ears := `{"name":"ears","mode":"listen","media":{"audioFormat":"g711_ulaw","sampleRate":8000},"websocket":{"url":"` +
		bot + `"}%s}`
	n.configure(t, fmt.Sprintf(ears, `,"queues":["support@127.0.0.20"]`))
	other := n.configure(t, fmt.Sprintf(ears, ""))

	events := pbx.newSessionEvents(t)
	bridged := slices.IndexFunc(events, func(e string) bool { return strings.Contains(e, `"CHANNEL_BRIDGE"`) })
	pbx.send(events[:bridged+1]...)
	pbx.awaitCommands(t, 1)
	pbx.streamLast(t, n, key)

	var transcribed transcript
	facts := ""
	channel.await(t, "what was said", func(all []event) bool {
		return slices.ContainsFunc(all, func(e event) bool {
			transcribed = e.transcript()
			facts = string(e.Data)
			return transcribed.Event == "call.transcript" && transcribed.Track == "callee" &&
				transcribed.Text == "8000 caller loud, callee silent"
		})
	})

	if !strings.Contains(facts, `"provider_id":"`) || strings.Contains(facts, other) {
		t.Errorf("the transcript: %s", facts)
	}

	session := n.addListener(t, transcribed.CallID, other)
	pbx.awaitCommands(t, 2)
	pbx.streamLast(t, n, key)
	channel.await(t, "the second listener's words", func(all []event) bool {
		return wasTranscribed(all, session, "callee", "caller loud, callee silent")
	})
	a := n.mustCall(t, http.MethodPost, "/api/v2/calls/none/listeners",
		map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON,
			"Authorization": n.dialler(t, "admin").header["Authorization"]}, `{"provider_id":"`+other+`"}`)
	if a.status != http.StatusNotFound {
		t.Errorf("an unknown call: %v", a)
	}
}

// listeningBot starts a provider that says of each call which voices it hears, and returns its address.
func listeningBot(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer ws.Close()

		var loud, frames = map[string]bool{}, map[string]int{}
		rate := 0
		for {
			var m struct {
				Event string
				Start struct {
					MediaFormat struct{ SampleRate int }
				}
				Media struct {
					Track   string
					Payload []byte
				}
			}
			if ws.ReadJSON(&m) != nil {
				return
			}

			rate = max(rate, m.Start.MediaFormat.SampleRate)
			if m.Event != "media" {
				continue
			}

			frames[m.Media.Track]++
			for _, sample := range m.Media.Payload {
				loud[m.Media.Track] = loud[m.Media.Track] || sample&0x7f < 0x40
			}

			if m.Media.Track == "callee" && frames["callee"] == 50 {
				volume := map[bool]string{true: "loud", false: "silent"}
				text := fmt.Sprintf("%d caller %s, callee %s", rate, volume[loud["caller"]], volume[loud["callee"]])
				message := fmt.Sprintf(`{"event":"transcript","transcript":{"text":%q,"final":true,`+
					`"track":"callee","startMs":0,"endMs":1000}}`, text)
				if ws.WriteMessage(websocket.TextMessage, []byte(message)) != nil {
					return
				}
			}
		}
	}))

	t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http")
}

// streamLast does what the last command uuid_audio_stream demands, until the test ends: a loud caller, a silent callee.
func (s *scriptedSwitch) streamLast(t *testing.T, n *node, key string) {
	t.Helper()
	s.mu.Lock()
	words := strings.SplitN(s.commands[len(s.commands)-1], " ", 7)
	s.mu.Unlock()

	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: n.roots}}
	ws, _, err := dialer.Dial(strings.Replace(words[3], "KEY", key, 1), nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := ws.WriteMessage(websocket.TextMessage, []byte(words[6])); err != nil {
		t.Fatal(err)
	}

	ended := make(chan struct{})
	frame := []byte(strings.Repeat("\x00\x20\x00\x00\x00\xe0\x00\x00", 80)) // 20 ms of two channels
	go func() {
		defer close(ended)
		for range time.Tick(20 * time.Millisecond) {
			if ws.WriteMessage(websocket.BinaryMessage, frame) != nil {
				return
			}
		}
	}()

	t.Cleanup(func() {
		_ = ws.Close()
		<-ended
	})
}
