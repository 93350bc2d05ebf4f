package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// hear has a provider that listens hear a call, once it is connected.
func (n *node) hear(t *testing.T, callID, provider string) (sessionID string) {
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

// said reports whether words of a track were recognised in a call.
func said(events []event, session, track, words string) bool {
	return slices.ContainsFunc(events, func(e event) bool {
		s := e.transcript()
		return s.Event == "call.transcript" && s.SessionID == session && s.Track == track && s.Final &&
			strings.Contains(s.Text, words)
	})
}

// TestARealRecogniserHearsPhonesAndBots has pocketsphinx hear two phones from Debian that speak with espeak-ng; then a
// bot written for Twilio answers one of them, is interrupted, and transfers it to the other.
func TestARealRecogniserHearsPhonesAndBots(t *testing.T) {
	tool(t, "espeak-ng")
	t.Setenv(botFolder, installed(t, botPackages))
	if !inNamespace(t) {
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
	session := n.hear(t, id, listener)
	channel.await(t, "the words of both phones", func(events []event) bool {
		return said(events, session, "caller", "where is my parcel") &&
			said(events, session, "callee", "how can i help")
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
	sphinx.said(t, "hears 1001 1002")
	sphinx.said(t, "end")

	bot, port := startBot(t, "twilio_pipecat.py", map[string]string{
		"TOKEN": "bot-secret-1", "REST": n.url, "SSL_CERT_FILE": filepath.Join(n.dir, "tls", "cert.pem"),
		"REQUESTS_CA_BUNDLE": filepath.Join(n.dir, "tls", "cert.pem"),
	})
	twilio := n.createBot(t, "twilio", "ws://127.0.0.1:"+port+"/media", `{"bot":"sales","queue":"1002"}`)
	alice.command(t, "dial", "sip:ai-"+twilio+"@127.0.0.1")
	bot.said(t, "connected sales 1001")
	var call transcript
	channel.await(t, "the bot's session", func(events []event) bool {
		return slices.ContainsFunc(events, func(e event) bool {
			call = e.transcript()
			return call.Event == "ai.session" && call.CallID != "" && strings.Contains(string(e.Data), twilio)
		})
	})
	session = n.hear(t, call.CallID, listener)
	channel.await(t, "the caller's words, and the bot's echo", func(events []event) bool {
		return said(events, session, "caller", "where is my parcel") &&
			said(events, session, "callee", "where is my parcel")
	})
	alice.press(t, "1")
	bot.said(t, "key 1")
	alice.press(t, "3")
	bot.said(t, "key 3")
	bot.said(t, "stop")
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
