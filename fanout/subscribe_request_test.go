package fanout

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

var insecure = &tls.Config{InsecureSkipVerify: true} // the test server's own certificate

func TestSubscriberGetsWhatItsTokenAdmits(t *testing.T) {
	for _, secure := range []bool{false, true} {
		log, directory := newMemoryLog(2), newDirectory()
		n := startNode(t, Config{}, log, directory, newPresence(), secure)
		for _, c := range []struct {
			name            string
			account         string
			accounts, types []string
			want            []int
		}{
			{"whole tree", "root", nil, nil, []int{0, 1, 3}},
			{"own account and below", "shop", nil, nil, []int{1, 3}},
			{"named account only", "root", []string{"shop"}, nil, []int{1}},
			{"named accounts", "root", []string{"kiosk", "root"}, nil, []int{0, 3}},
			{"type", "root", nil, []string{string(event.AgentState)}, []int{3}},
			{"another tree", "other", nil, nil, []int{2}},
		} {
			t.Run(c.name, func(t *testing.T) {
				sub := n.dial(t, directory.token(c.account, c.accounts, c.types), "")
				log.put(0, "root", event.QueueCall, 0)
				log.put(0, "shop", event.QueueCall, 1)
				log.put(0, "other", event.QueueCall, 2)
				log.put(0, "kiosk", event.AgentState, 3)
				last := log.put(0, c.account, event.AgentState, 4)

				if c.accounts != nil {
					last = log.put(0, c.accounts[0], event.AgentState, 5)
				}

				var got []int
				for {
					m := sub.next()
					if m["id"] == last[0].String() {
						break
					}
					if number(m) < 4 {
						got = append(got, number(m))
					}
				}

				if !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})

			log.mu.Lock() // the next case begins with sources from 0 again
			log.partitions = make([][]kafka.Record, 2)
			log.mu.Unlock()

			n.close()
			n = startNode(t, Config{}, log, directory, newPresence(), secure)
		}
	}
}

func TestRepeatsAreDroppedByPosition(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "")
	log.put(0, "root", event.QueueCall, 0, 1, 2, 1, 2, 3, 0, 4)
	if got := sub.numbers(5); !slices.Equal(got, rising(0, 5)) {
		t.Errorf("got %v", got)
	}
}

// A raw log that lost its end gives offsets out again. What lies there then is
// new, and comes after everything of the generation before.
func TestRecordsOfALaterGenerationAreNoRepeats(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "cursor=true")
	later := event.Position{Generation: 1}.Packed()
	log.put(0, "root", event.QueueCall, 0, 1, 2, 3, later+2, later+3, 3, 4, later+3, later+4)
	want := []int{0, 1, 2, 3, int(later) + 2, int(later) + 3, int(later) + 4}
	if got := sub.numbers(len(want)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRefusalsComeBeforeTheUpgrade(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)

	token := directory.token("root", nil, nil)
	ids := log.put(0, "root", event.QueueCall, 0, 1)
	for _, c := range []struct {
		name, token, query string
		status             int
	}{
		{"bad token", "nobody", "", 401},
		{"no event id", token, "since=1", 400},
		{"no cursor", token, "since=" + ids[0].String() + ".AAAA", 400},
		{"an id of the future", token, "since=" + (ids[1] + 1024).String(), 410},
		{"an id never given", token, "since=" + (ids[1] - 1024).String(), 410},
		{"an id of a partition that is not there", token, "since=" + (ids[1] + 1).String(), 410},
		{"an id older than the log", token, "since=cc_evt_1400000000000000000", 410},
	} {
		_, response, err := n.tryDial(c.token, c.query)
		if err == nil || response == nil || response.StatusCode != c.status {
			t.Errorf("%s: %v, %+v, want %d", c.name, err, response, c.status)
		}
	}

	response, err := http.Get(n.url + "/ws?token=" + token)
	if err != nil || response.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without upgrade: %v %v", response, err)
	}

	request, err := http.NewRequest(http.MethodGet, n.url+"/ws?token="+token, nil)
	if err != nil {
		t.Fatal(err)
	}

	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"8"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
	response, err = http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != http.StatusUpgradeRequired ||
		response.Header.Get("Sec-WebSocket-Version") != "13" {
		t.Errorf("another version: %v %v", response, err)
	}
}

func TestAHandshakeHasTheHeadersOfTheResponse(t *testing.T) {
	directory := newDirectory()
	n := startNode(t, Config{}, newMemoryLog(1), directory, newPresence(), false)
	ws, response, err := n.tryDial(directory.token("root", nil, nil), "")
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()

	if response.Header.Get("X-Request-ID") != "request-1" {
		t.Errorf("headers %v", response.Header)
	}
}

func TestPermissionsReachOpenSockets(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	doomed := directory.token("root", nil, nil)
	revoked := n.dial(t, doomed, "")
	narrowed := n.dial(t, directory.token("shop", []string{"shop", "kiosk"}, nil), "")
	emptied := n.dial(t, directory.token("root", []string{"kiosk"}, nil), "")

	directory.edit(func() {
		directory.revoked[doomed] = true
		directory.tree = identity.NewTree(
			identity.Account{ID: "root", Name: "root", Domain: "root"},
			identity.Account{ID: "shop", Name: "shop", Domain: "shop", ParentID: "root"},
			identity.Account{ID: "kiosk", Name: "kiosk", Domain: "kiosk"})
	})

	if e := revoked.closed(); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("revoked token: %v", e)
	}
	if e := emptied.closed(); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("nothing left to see: %v", e)
	}

	log.put(0, "kiosk", event.QueueCall, 0)
	log.put(0, "shop", event.QueueCall, 1)
	if got := narrowed.numbers(1); got[0] != 1 {
		t.Errorf("narrowed subscriber got %v", got)
	}
}

func TestPeerThatTalksIsClosed(t *testing.T) {
	n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), false)
	token := n.directory.(*memoryDirectory).token("root", nil, nil)
	sub := n.dial(t, token, "")

	for range peerMessages {
		if err := sub.ws.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}

	n.log.(*memoryLog).put(0, "root", event.QueueCall, 7)
	if got := sub.numbers(1); got[0] != 7 {
		t.Errorf("a little chatter is ignored, got %v", got)
	}

	_ = sub.ws.WriteMessage(websocket.TextMessage, []byte("hello"))
	if e := sub.closed(); e.Code != DisconnectProtocolError.Code {
		t.Errorf("too much chatter: %v", e)
	}
}

func TestPeerThatBreaksTheProtocolIsClosed(t *testing.T) {
	for _, secure := range []bool{false, true} {
		n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), secure)
		sub := n.dial(t, n.directory.(*memoryDirectory).token("root", nil, nil), "")
		if _, err := sub.ws.NetConn().Write([]byte{0xff, 0x00}); err != nil { // unmasked, reserved bits
			t.Fatal(err)
		}
		if e := sub.closed(); e.Code != DisconnectProtocolError.Code {
			t.Errorf("got %v", e)
		}

		n.close()
	}
}

func TestCloseIsAnswered(t *testing.T) {
	n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), false)
	sub := n.dial(t, n.directory.(*memoryDirectory).token("root", nil, nil), "")
	_ = sub.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye"))
	if e := sub.closed(); e.Code != websocket.CloseNormalClosure {
		t.Errorf("got %v", e)
	}
	eventually(t, "the node forgets the connection",
		func() bool { return n.subscribers.count()+n.subscribers.countDisconnecting() == 0 })
}

func TestPingIsAnsweredAndSilenceEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for timeouts")
	}

	n := startNode(t, Config{Settings: Settings{PingInterval: time.Second, IdleTimeout: 4 * time.Second}},
		newMemoryLog(1), newDirectory(), newPresence(), false)
	sub := n.dial(t, n.directory.(*memoryDirectory).token("root", nil, nil), "")
	pings := 0
	sub.ws.SetPingHandler(func(string) error { pings++; return nil }) // never a pong

	if e := sub.closed(); e.Code != DisconnectSilent.Code || pings == 0 {
		t.Errorf("silent peer after %d pings: %v", pings, e)
	}
}

func TestStalledReaderIsClosedAndDelaysNobody(t *testing.T) {
	for _, secure := range []bool{false, true} {
		log, directory := newMemoryLog(1), newDirectory()
		n := startNode(t, Config{Settings: Settings{QueueBytes: 64 << 10}}, log, directory, newPresence(), secure)
		stalled := n.dial(t, directory.token("root", nil, nil), "")
		brisk := n.dial(t, directory.token("root", nil, nil), "")

		const events = 30_000                                            // far more than socket buffers hold
		for i := 0; i < events && n.subscribers.count() == 2; i += 500 { // its close frame waits for a few seconds only
			log.put(0, "root", event.QueueCall, runNode(i, i+500)...)
			if got := brisk.numbers(500); !slices.Equal(got, rising(i, i+500)) {
				t.Fatalf("the brisk reader got %v after %d", got, i)
			}
		}

		eventually(t, "the stalled one leaves the counts", func() bool { return n.subscribers.count() == 1 })
		e := stalled.closed()
		if e.Code != DisconnectTooSlow.Code || !strings.Contains(e.Text, "cc_evt_") {
			t.Errorf("stalled reader: %v", e)
		}

		n.close()
	}
}

func TestHealthAndStatsCoverTheCluster(t *testing.T) {
	log, directory, presence := newMemoryLog(1), newDirectory(), newPresence()
	a := startNode(t, Config{NodeID: "a"}, log, directory, presence, false)
	b := startNode(t, Config{NodeID: "b"}, log, directory, presence, false)
	a.dial(t, directory.token("root", nil, nil), "")
	b.dial(t, directory.token("shop", nil, nil), "")
	other := b.dial(t, directory.token("other", nil, nil), "")

	eventually(t, "both nodes count three", func() bool {
		_, here := a.Health(t.Context())
		_, there := b.Health(t.Context())
		return here == 3 && there == 3
	})

	if clients := a.Stats(t.Context(), &identity.Principal{AccountID: "root"}); len(clients) != 2 {
		t.Errorf("root sees %+v", clients)
	}

	_ = other.ws.Close()
	eventually(t, "the count follows", func() bool { _, n := a.Health(t.Context()); return n == 2 })
	presence.mu.Lock()
	presence.down = true
	presence.mu.Unlock()

	eventually(t, "without shared state the node counts itself", func() bool {
		status, n := a.Health(t.Context())
		return status == StatusDegraded && n == 1
	})

	presence.mu.Lock()
	presence.down = false
	presence.nodes = make(map[string]map[string]Client) // it began anew
	presence.mu.Unlock()

	eventually(t, "the shared state is filled again", func() bool {
		status, n := a.Health(t.Context())
		return status == StatusOK && n == 2
	})
}

func TestDrainSaysComeBack(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{DrainSpread: 50 * time.Millisecond}}, log, directory, newPresence(),
		false)
	sub := n.dial(t, directory.token("root", nil, nil), "")
	ids := log.put(0, "root", event.QueueCall, 0)
	sub.numbers(1)
	done := make(chan struct{})
	go func() { n.Drain(t.Context()); close(done) }()

	if e := sub.closed(); e.Code != DisconnectRestart.Code || !strings.Contains(e.Text, ids[0].String()) {
		t.Errorf("got %v", e)
	}

	<-done
	if _, response, _ := n.tryDial(directory.token("root", nil, nil), ""); response.StatusCode != 503 {
		t.Errorf("while draining: %d", response.StatusCode)
	}
}

// A client can tell the end of a stream from a broken connection.
func TestAnEventStreamEndsWithItsLastChunk(t *testing.T) {
	for _, c := range []struct{ secure, http2 bool }{{false, false}, {true, false}, {true, true}} {
		directory := newDirectory()
		n := startNode(t, Config{}, newMemoryLog(1), directory, newPresence(), c.secure)
		token := directory.token("root", nil, nil)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			ForceAttemptHTTP2: c.http2}}
		response, err := client.Get(n.url + "/stream?token=" + token)
		if err != nil || response.StatusCode != 200 || (response.ProtoMajor == 2) != c.http2 {
			t.Fatalf("%v %v", response, err)
		}

		directory.edit(func() { directory.revoked[token] = true })
		body, err := io.ReadAll(response.Body)
		if err != nil || !strings.HasSuffix(string(body), ": 4003 access revoked\n\n") {
			t.Errorf("%+v: %v after %q", c, err, body)
		}

		_ = response.Body.Close()
		client.CloseIdleConnections()
	}
}

// A stream that asks for the past alone ends by itself, also where there is none.
func TestAStreamOfThePastEnds(t *testing.T) {
	directory := newDirectory()
	token := directory.token("root", nil, nil)
	read := func(n *node, query string) (status int, events int) {
		t.Helper()
		response, err := http.Get(n.url + "/stream?token=" + token + query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()

		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}

		return response.StatusCode, strings.Count(string(body), "\ndata: ")
	}

	empty := startNode(t, Config{}, newMemoryLog(2), directory, newPresence(), false)
	if status, events := read(empty, "&since=earliest&until=now"); status != 200 || events != 0 {
		t.Errorf("of nothing: %d, %d events", status, events)
	}

	log := newMemoryLog(2)
	log.put(0, "root", event.QueueCall, 0, 500)
	log.put(1, "root", event.QueueCall, 0, 1, 2)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	if status, events := read(n, "&since=earliest&until=now"); status != 200 || events != 5 {
		t.Errorf("of the past: %d, %d events", status, events)
	}

	for _, query := range []string{"&until=now", "&until=later&since=earliest"} {
		if status, _ := read(n, query); status != 400 {
			t.Errorf("%s answers %d", query, status)
		}
	}
}

func TestEventStreamCarriesCursors(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()

	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	stream := func(lastEventID string) *bufio.Scanner {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, n.url+"/stream?token="+token, nil)
		if lastEventID != "" {
			request.Header.Set("Last-Event-ID", lastEventID)
		}

		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%v %v", response, err)
		}

		t.Cleanup(func() { _ = response.Body.Close() })
		return bufio.NewScanner(response.Body)
	}

	field := func(s *bufio.Scanner, name string) string {
		for s.Scan() {
			if v, ok := strings.CutPrefix(s.Text(), name+": "); ok {
				return v
			}
		}

		t.Fatal("stream ended")
		return ""
	}

	first := stream("")
	log.put(0, "root", event.QueueCall, 0, 1)
	log.put(1, "root", event.QueueCall, 0, 1, 2)
	var cursor string

	for range 3 {
		cursor = field(first, "id")
		field(first, "data")
	}

	again := stream(cursor)
	seen := field(again, "id")
	if !strings.HasPrefix(seen, "cc_evt_") {
		t.Errorf("id %q", seen)
	}

	field(again, "data")
	field(again, "id")
	log.put(0, "root", event.QueueCall, 2)

	if data := field(again, "data"); !strings.Contains(data, `"n"`) {
		t.Errorf("data %q", data)
	}

	field(again, "id")
	if data := field(again, "data"); !strings.Contains(data, `"n":2`) {
		t.Errorf("the event after the resumed ones is the new one: %q", data)
	}
}
