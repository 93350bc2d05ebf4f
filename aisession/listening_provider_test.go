package aisession_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gorilla/websocket"
	"github.com/redis/go-redis/v9"

	"trunkline/aisession"
	"trunkline/aisession/listening"
	"trunkline/aisession/pcmsocket"
	"trunkline/aisession/sipcall"
	"trunkline/audit"
	"trunkline/audit/audittest"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
	"trunkline/internal/sqldb"
	"trunkline/telephony/audio"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// overheard is a call between a phone and an AI provider, which a second provider hears.
type overheard struct {
	*testEnv
	listeners *listening.Listeners
	phone     *sipPhone
	answers   *fakeConnection // speaks µ-law 0x00
	bot       *vendor         // listens
	audit     *audit.Log
	nodes     *redisclient.HolderRequests[listening.StartRequest]
}

// overhear connects the call. The phone is silent.
func overhear(t *testing.T, protocol string, codec sip.Codec) *overheard {
	t.Helper()
	answering := startProvider(t, 160, nil)
	bot := startVendor(t)
	e := startService(t, aisession.DefaultSettings(), answering)
	listener := configOf(&provider{server: bot.server}, aiprotocol.ULaw)
	listener.ID, listener.Protocol, listener.Listens, listener.Headers = "hears", protocol, true, nil
	e.providers = map[string]aiprovider.Provider{"prov1": configOf(answering, aiprotocol.ULaw), "hears": listener}
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })
	log := audittest.New(t, db)
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })

	nodes := &redisclient.HolderRequests[listening.StartRequest]{Client: client, Channel: "test:listeners",
		Log: slog.New(slog.DiscardHandler)}
	o := &overheard{testEnv: e, bot: bot, audit: log, nodes: nodes, listeners: listening.New(listening.Deps{
		Sessions: e.Service, Providers: envProviders{e},
		MayUse: func(of, provider string) bool { return of == provider },
		Nodes:  nodes, Audit: log,
	})}

	server := startSIP(t, 23600, func(ports *rtp.Ports) sip.Handler {
		return sipcall.New(sipcall.Deps{
			Sessions: e.Service, Providers: envProviders{e}, Ports: ports,
			MayCall: func(string, string) bool { return true },
			Log:     slog.New(slog.DiscardHandler), Admission: callLimits{}, Recorder: o.listeners,
		})
	})

	phone, err := startSIP(t, 23700, nil).call(t, server, "ai-prov1", codec)
	if err != nil {
		t.Fatal(err)
	}

	o.phone, o.answers = phone, answering.nextConnection()
	return o
}

// run has a node answer the others until the test ends.
func (o *overheard) run(t *testing.T, node *listening.Listeners) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = node.Run(ctx) // ends with ctx
	}()

	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// listen has the second provider hear the call.
func (o *overheard) listen(t *testing.T) (sessionID string, bot *vendorConnection) {
	t.Helper()
	var err error
	until(t, "a connected call", func() bool {
		sessionID, err = o.listeners.StartListener(t.Context(), "demo", o.phone.leg.CallID(), "hears")
		return fault.KindOf(err) != fault.KindConflict
	})

	if err != nil {
		t.Fatal(err)
	}

	return sessionID, <-o.bot.accepts
}

// heard waits until the listener has heard the bytes on the track.
func (c *vendorConnection) heard(t *testing.T, track string, want []byte) {
	t.Helper()
	until(t, fmt.Sprintf("the voice of %s", track), func() bool { return bytes.Contains(c.track(track), want) })
}

// track returns the audio of a track.
func (c *vendorConnection) track(name string) (all []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, m := range c.texts {
		media, isMedia := m["media"].(map[string]any)
		if isMedia && media["track"] == name {
			payload, _ := base64.StdEncoding.DecodeString(media["payload"].(string))
			all = append(all, payload...)
		}
	}

	return all
}

// awaitTranscripts waits for n call.transcript events.
func (h *testEnv) awaitTranscripts(t *testing.T, n int) (events []map[string]any) {
	t.Helper()
	until(t, "transcripts", func() bool {
		events = slices.DeleteFunc(h.events.all(),
			func(e map[string]any) bool { return e["event"] != "call.transcript" })
		return len(events) >= n
	})
	return events
}

// A provider that listens hears both voices, each on its own track, and what it writes becomes events.
func TestAProviderListensToBothVoicesOfACall(t *testing.T) {
	for protocol, tracks := range map[string][2]string{"trunkline": {"caller", "callee"},
		"twilio": {"inbound", "outbound"}} {
		t.Run(protocol, func(t *testing.T) {
			o := overhear(t, protocol, sip.PCMU())
			session, bot := o.listen(t)
			bot.named(t, "start")

			ctx, quiet := context.WithCancel(t.Context())
			talking := make(chan struct{})
			go func() {
				defer close(talking)
				o.phone.stream.Run(ctx, source(func(b []byte) int { return copy(b, bytes.Repeat([]byte{0x20}, 160)) }))
			}()

			if err := o.answers.sendAudio(bytes.Repeat([]byte{0x00}, 8000)); err != nil {
				t.Fatal(err)
			}

			bot.heard(t, tracks[0], bytes.Repeat([]byte{0x20}, 800))
			bot.heard(t, tracks[1], bytes.Repeat([]byte{0x00}, 800))
			quiet()
			<-talking

			if bytes.Contains(bot.track(tracks[0]), []byte{0, 0, 0, 0}) ||
				bytes.Contains(bot.track(tracks[1]), []byte{0x20, 0x20, 0x20, 0x20}) {
				t.Error("a voice is on the other track too")
			}

			bot.say(t, `{"event":"media","media":{"payload":"`+loud(160)+`"}}`)
			bot.say(t, `{"event":"hangup"}`)
			bot.say(t, `{"event":"clear"}`)
			bot.say(t, `{"event":"transcript","transcript":{"text":"I want","final":false,"track":"`+tracks[0]+`","startMs":20,"endMs":700}}`)
			bot.say(t, `{"event":"transcript","transcript":{"text":"","final":false,"track":"callee","startMs":20,"endMs":700}}`)
			bot.say(t, `{"event":"transcript","transcript":{"text":"Good morning","final":true,"track":"`+tracks[1]+`","startMs":40,"endMs":900.5}}`)
			events := o.awaitTranscripts(t, 2)
			want := map[string]any{
				"event": "call.transcript", "account_id": "demo", "timestamp": events[0]["timestamp"],
				"call_id":    o.phone.leg.CallID(),
				"session_id": session, "provider_id": "hears", "track": "caller", "text": "I want", "final": false,
				"start_ms": 20.0, "end_ms": 700.0,
			}
			if fmt.Sprint(events[0]) != fmt.Sprint(want) {
				t.Errorf("the event is %v, want %v", events[0], want)
			}

			if events[1]["track"] != "callee" || events[1]["final"] != true || events[1]["end_ms"] != 900.0 {
				t.Errorf("the second event is %v", events[1])
			}
			if n := o.metric("trunkline_aisession_active", "ingress", "listener"); n != 1 {
				t.Errorf("%v listeners", n)
			}

			o.phone.leg.Hangup(sip.NormalClearing)
			entries := audittest.Entries(t, o.audit, "demo", "call.monitor")
			if len(entries) != 1 ||
				!strings.Contains(entries[0], "call:"+o.phone.leg.CallID()+" ai_provider:hears ok") {
				t.Errorf("the audit log has %q", entries)
			}

			end := map[string]string{"trunkline": "hangup", "twilio": "stop"}[protocol]
			bot.named(t, end)
			<-bot.done
			o.answers.waitEnd(t)
		})
	}
}

// The provider is lost, or the call changes its codec: neither ends what the other does.
func TestAListenerThatIsLostComesBackAndTheCallGoesOn(t *testing.T) {
	o := overhear(t, "trunkline", sip.Opus())
	_, bot := o.listen(t)
	_ = bot.Close()
	bot = <-o.bot.accepts

	ctx, quiet := context.WithCancel(t.Context())
	talking := make(chan struct{})
	go func() {
		defer close(talking)
		o.phone.talk(ctx, audio.Format{Encoding: audio.Opus, Rate: 48000})
	}()

	until(t, "the caller's voice", func() bool {
		for _, b := range bot.track("caller") {
			if b&0x7f < 0x40 { // loud
				return true
			}
		}
		return false
	})

	quiet()
	<-talking
	o.phone.leg.Hangup(sip.NormalClearing)
	bot.named(t, "hangup")
}

// A node that does not connect the call asks the one that does, and the audit log has one entry.
func TestAListenerIsBegunOnAnyNode(t *testing.T) {
	o := overhear(t, "trunkline", sip.PCMU())
	asking := listening.New(listening.Deps{Nodes: o.nodes, Audit: o.audit})
	for _, node := range []*listening.Listeners{o.listeners, asking} {
		o.run(t, node)
	}

	until(t, "both nodes to answer", func() bool {
		n, err := o.nodes.Client.PubSubNumSub(t.Context(), o.nodes.Channel).Result()
		return err == nil && n[o.nodes.Channel] == 2
	})

	var session string
	var err error
	until(t, "a connected call", func() bool {
		session, err = asking.StartListener(t.Context(), "demo", o.phone.leg.CallID(), "hears")
		return fault.KindOf(err) != fault.KindConflict
	})

	if err != nil {
		t.Fatal(err)
	}

	bot := <-o.bot.accepts
	bot.named(t, "start")
	bot.say(t, `{"event":"transcript","transcript":{"text":"hello","final":true,"track":"caller","startMs":0,"endMs":1}}`)

	if e := o.awaitTranscripts(t, 1)[0]; e["session_id"] != session {
		t.Errorf("session %v, want %s", e["session_id"], session)
	}

	for call, want := range map[string]fault.Kind{o.phone.leg.CallID(): fault.KindConflict,
		"none": fault.KindNotFound} {
		if _, err := asking.StartListener(t.Context(), "demo", call, "hears"); fault.KindOf(err) != want {
			t.Errorf("%s: %v, want %s", call, err, want)
		}
	}

	if entries := audittest.Entries(t, o.audit, "demo", "call.monitor"); len(entries) != 1 {
		t.Errorf("the audit log has %q", entries)
	}

	o.phone.leg.Hangup(sip.NormalClearing)
	bot.named(t, "hangup")
}

func TestAListenerThatCannotBeStarted(t *testing.T) {
	o := overhear(t, "trunkline", sip.PCMU())
	call := o.phone.leg.CallID()
	other := o.providers["hears"]
	other.ID, other.AccountID = "foreign", "other"
	o.providers["foreign"] = other
	_, bot := o.listen(t)

	for name, c := range map[string]struct {
		account, call, provider string
		want                    fault.Kind
	}{
		"a call of another account":     {"other", call, "hears", fault.KindNotFound},
		"no such call":                  {"demo", "nothing", "hears", fault.KindNotFound},
		"a provider of another account": {"demo", call, "foreign", fault.KindNotFound},
		"no such provider":              {"demo", call, "nobody", fault.KindNotFound},
		"one that answers":              {"demo", call, "prov1", fault.KindInvalid},
		"one that hears it already":     {"demo", call, "hears", fault.KindConflict},
	} {
		if _, err := o.listeners.StartListener(t.Context(), c.account, c.call,
			c.provider); fault.KindOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}

	listening := request(o.providers["hears"], ulaw)
	if _, err := o.Open(t.Context(), listening); fault.KindOf(err) != fault.KindRefused {
		t.Errorf("a call to a provider that listens: %v", err)
	}

	o.phone.leg.Hangup(sip.NormalClearing)
	bot.named(t, "hangup")
	until(t, "the end of the call", func() bool {
		_, err := o.listeners.StartListener(t.Context(), "demo", call, "hears")
		return fault.KindOf(err) == fault.KindNotFound
	})

	if raw, err := json.Marshal(o.events.all()); err != nil || bytes.Contains(raw, []byte("transcript")) {
		t.Errorf("events %s, %v", raw, err)
	}
}

// A switch sends both voices in two channels, or one voice of a connection: mod_audio_fork's
// stereo, Asterisk's ChanSpy.
func TestAProviderListensToACallOfASwitch(t *testing.T) {
	bot := startVendor(t)
	switches := &platform{}
	h := startService(t, aisession.DefaultSettings(), &provider{server: bot.server},
		func(d *aisession.Deps) { d.Platform = switches })
	with := configOf(&provider{server: bot.server}, aiprotocol.ULaw)
	with.Protocol, with.Listens, with.Headers = "twilio", true, nil
	ingress := pcmsocket.New(h, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = ingress.ServeMedia(w, r, with) }))
	defer server.Close()

	address := "ws" + strings.TrimPrefix(server.URL, "http")
	const quiet, loud = "\x00\x04", "\x00\x40" // samples
	inULaw := func(sample string) []byte {
		encode, err := audio.NewTranscoder(audio.Format{Encoding: audio.PCM16, Rate: 8000}, ulaw)
		if err != nil || encode.Decode([]byte(strings.Repeat(sample, 160))) != nil {
			t.Fatal(err)
		}
		frame, _ := encode.EncodeFrame(nil)
		return frame
	}

	send := func(ws *websocket.Conn, frame string, done func() bool) {
		until(t, "the voices", func() bool {
			if err := ws.WriteMessage(websocket.BinaryMessage, []byte(frame)); err != nil {
				t.Fatal(err)
			}
			return done()
		})
	}

	ws, _, err := websocket.DefaultDialer.Dial(address, nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := ws.WriteMessage(websocket.TextMessage,
		[]byte(`{"callId":"member-1","callerIdNumber":"1001","channels":2}`)); err != nil {
		t.Fatal(err)
	}

	c := <-bot.accepts
	send(ws, strings.Repeat(quiet+loud, 400), func() bool {
		return bytes.Contains(c.track("inbound"), inULaw(quiet)) && bytes.Contains(c.track("outbound"), inULaw(loud))
	})

	if bytes.Contains(c.track("inbound"), inULaw(loud)) || bytes.Contains(c.track("outbound"), inULaw(quiet)) {
		t.Error("a voice is on the other track too")
	}

	c.say(t, `{"event":"transcript","transcript":{"text":"hello","final":true,"track":"inbound","startMs":0,"endMs":1}}`)
	if e := h.awaitTranscripts(t, 1)[0]; e["call_id"] != "member-1" || e["track"] != "caller" {
		t.Errorf("the event is %v", e)
	}

	// A bot that has heard enough does not end the call of others.
	err = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""),
		time.Now().Add(patience))
	if err != nil {
		t.Fatal(err)
	}

	until(t, "the end", func() bool { _, _, err := ws.ReadMessage(); return err != nil })

	dialer := websocket.Dialer{Subprotocols: []string{"media"}}
	ws, _, err = dialer.Dial(address+"?otherLegCallId=1795672155.7&track=callee", nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := ws.WriteMessage(websocket.TextMessage,
		[]byte("MEDIA_START channel:WebSocket/c/0x1 channel_id:1795672155.12 format:slin")); err != nil {
		t.Fatal(err)
	}

	c = <-bot.accepts
	send(ws, strings.Repeat(loud, 160), func() bool { return bytes.Contains(c.track("outbound"), inULaw(loud)) })
	if bytes.Contains(c.track("inbound"), inULaw(loud)) {
		t.Error("the callee is on the caller's track")
	}
	if start := c.named(t,
		"start")["start"].(map[string]any); start["customParameters"].(map[string]any)["callId"] != "1795672155.7" {
		t.Errorf("start is %v", start)
	}

	_ = ws.Close()
	c.named(t, "stop")
	if asked := switches.all(); asked != "" {
		t.Errorf("the platform was asked for %s", asked)
	}
}

// A call that no node connects is the platform's; its session has the id that the answer named, which no other may
// take.
func TestAListenerOfAPlatformsCall(t *testing.T) {
	o := overhear(t, "trunkline", sip.PCMU())
	switches := &platform{}
	listeners := listening.New(listening.Deps{Sessions: o.Service, Providers: envProviders{o.testEnv}, Audit: o.audit,
		MayUse: func(of, provider string) bool { return of == provider }, Platform: switches})
	session, err := listeners.StartListener(t.Context(), "demo", "1795716086.211", "hears")
	want := "hear as " + session + ", by a rule false: 1795716086.211 of demo by hears, other leg "
	if err != nil || switches.all() != want {
		t.Fatalf("asked for %q, want %q: %v", switches.all(), want, err)
	}

	for provider, kind := range map[string]fault.Kind{"nobody": fault.KindNotFound, "prov1": fault.KindInvalid} {
		_, err := listeners.StartListener(t.Context(), "demo", "1795716086.211", provider)
		if fault.KindOf(err) != kind || switches.all() != want {
			t.Errorf("%s: %v, asked for %q", provider, err, switches.all())
		}
	}

	ingress := pcmsocket.New(o.Service, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { _ = ingress.ServeMedia(w, r, o.providers["hears"]) }))
	defer server.Close()

	stream := func() *websocket.Conn {
		ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
		if err != nil {
			t.Fatal(err)
		}

		for range 3 { // what mod_audio_stream has heard while it was connecting
			if err := ws.WriteMessage(websocket.BinaryMessage, make([]byte, 640)); err != nil {
				t.Fatal(err)
			}
		}

		hello := `{"callId":"leg","otherLegCallId":"1795716086.211","channels":2,"sessionId":"` + session + `"}`
		if err := ws.WriteMessage(websocket.TextMessage, []byte(hello)); err != nil {
			t.Fatal(err)
		}

		return ws
	}

	ws := stream()
	bot := <-o.bot.accepts
	bot.named(t, "start")
	bot.say(t, `{"event":"transcript","transcript":{"text":"hello","final":true,"track":"caller","startMs":0,"endMs":1}}`)

	if e := o.awaitTranscripts(t, 1)[0]; e["session_id"] != session || e["call_id"] != "1795716086.211" {
		t.Errorf("the transcript: %v", e)
	}

	again := stream()
	_, _, err = again.ReadMessage()
	if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) || !strings.Contains(err.Error(), "with this id") {
		t.Errorf("the same id again: %v", err)
	}

	_ = again.Close()
	_ = ws.Close()
	bot.named(t, "hangup")
}
