package fanout

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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
