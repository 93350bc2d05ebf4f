package conformance_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/clients/conformance"
)

// each runs a test for every client library.
func each(t *testing.T, test func(t *testing.T, language string)) {
	for _, language := range conformance.Languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			test(t, language)
		})
	}
}

// TestBehaviour checks each client against a server that misbehaves in one way.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	end := script{events: []string{"end"}, stay: true}
	for _, c := range []struct {
		name      string
		since     string
		snapshot  bool
		logins    []int
		snapshots []int // statuses of the snapshot requests
		streams   []script
		ids       string // delivered events
		asked     string // since of each stream request, joined by |
		tokens    string // token of each stream request
		reported  string // errors of the status changes
		fails     string // the error that ends the subscription
	}{
		{name: "goes on after its last cursor and drops what comes again", streams: []script{
			{events: []string{"a", "b"}}, {events: []string{"b", "a", "c"}}, end,
		}, ids: "a b c end", asked: "|b.cursor|c.cursor", tokens: "token1 token1 token1",
			reported: "ConnectionLostError ConnectionLostError"},
		{name: "begins where it was told, again until something came", since: "earliest", streams: []script{
			{close: 1011}, end,
		}, ids: "end", asked: "earliest|earliest", tokens: "token1 token1", reported: "ServerFaultError"},
		{name: "comes back after each code that allows it", streams: []script{
			{events: []string{"a"}, close: 1012}, {events: []string{"b"}, close: 1001}, {close: 4008}, {close: 1011},
			{close: 1000}, {close: 4999}, end,
		}, ids: "a b end", asked: "|a.cursor|b.cursor|b.cursor|b.cursor|b.cursor|b.cursor",
			tokens:   "token1 token1 token1 token1 token1 token1 token1",
			reported: "RestartError GoingAwayError TooSlowError ServerFaultError ClosedError ClosedError"},
		{name: "delivers what came before the close", streams: []script{
			{events: []string{"a", "b", "c"}, close: 4003},
		}, ids: "a b c", tokens: "token1", fails: "AccessRevokedError"},
		{name: "logs in again when the token has expired", streams: []script{
			{events: []string{"a"}, close: 4001}, end,
		}, ids: "a end", asked: "|a.cursor", tokens: "token1 token2", reported: "TokenExpiredError"},
		{name: "logs in again when the token is refused", streams: []script{{refuse: 401}, end},
			ids: "end", asked: "|", tokens: "token1 token2", reported: "RefusedError"},
		{name: "comes back to a server that is busy, away or draining", logins: []int{503, 429, 500},
			streams: []script{{refuse: 503}, {refuse: 429}, {refuse: 502}, end}, ids: "end", asked: "|||",
			tokens:   "token4 token4 token4 token4",
			reported: "LoginRefusedError LoginRefusedError LoginRefusedError RefusedError RefusedError RefusedError"},
		{name: "comes back with a cursor that is too new for a node",
			streams: []script{{events: []string{"a"}, close: 1012}, {refuse: 503}, end},
			ids:     "a end", asked: "|a.cursor|a.cursor", tokens: "token1 token1 token1",
			reported: "RestartError RefusedError"},
		{name: "stops when its position is malformed", since: "x", streams: []script{{refuse: 400}}, asked: "x",
			tokens: "token1", fails: "RefusedError"},
		{name: "stops when its password is wrong", logins: []int{401}, fails: "LoginRefusedError"},
		{name: "stops when its account is removed", logins: []int{200, 401},
			streams: []script{{events: []string{"a"}, close: 4001}},
			ids:     "a", tokens: "token1", reported: "TokenExpiredError", fails: "LoginRefusedError"},
		{name: "stops when its filters are wrong", logins: []int{400}, fails: "LoginRefusedError"},
		{name: "stops when the channel is forbidden", streams: []script{{refuse: 403}}, tokens: "token1",
			fails: "RefusedError"},
		{name: "stops when its position is gone", since: "b", streams: []script{{refuse: 410}}, asked: "b",
			tokens: "token1", fails: "PositionGoneError"},
		{name: "stops when it is replaced", streams: []script{{close: 4009}}, tokens: "token1", fails: "ReplacedError"},
		{name: "stops when the server calls it a misuse", streams: []script{{close: 1008}}, tokens: "token1",
			fails: "MisuseError"},
		{name: "stops at what is not JSON", streams: []script{{events: []string{"data: {"}, stay: true}},
			tokens: "token1", fails: "ProtocolError"},
		{name: "stops at an event without an id",
			streams: []script{{events: []string{`data: {"type":"x"}`}, stay: true}},
			tokens:  "token1", fails: "ProtocolError"},
		{name: "ignores comments, and joins the lines of an event", streams: []script{
			{events: []string{":", ": hello", "data: {\"id\":\ndata:\"a\"}", "data: {\"id\":\r\ndata: \"end\"}\r"},
				stay: true},
		}, ids: "a end", tokens: "token1"},
		{name: "takes a snapshot, then every event after it", snapshot: true, snapshots: []int{503},
			streams: []script{{events: []string{"a"}}, end},
			ids:     "s1.cursor? a end", asked: "s2.cursor|a.cursor", tokens: "token1 token1",
			reported: "RefusedError ConnectionLostError"},
		{name: "takes another snapshot when its position is gone", snapshot: true,
			streams: []script{{events: []string{"a"}}, {refuse: 410}, end},
			ids:     "a end", asked: "s1.cursor|a.cursor|s2.cursor", tokens: "token1 token1 token1",
			reported: "ConnectionLostError PositionGoneError"},
		{name: "needs no snapshot where it has a position", snapshot: true, since: "x", streams: []script{end},
			ids: "end", asked: "x", tokens: "token1"},
		{name: "stops when snapshots are off", snapshot: true, snapshots: []int{404}, fails: "RefusedError"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, language string) {
				s := (&server{loginStatuses: c.logins, snapshotStatuses: c.snapshots, streams: c.streams}).start(t)
				settings := s.settings()
				settings.Since, settings.Snapshot = c.since, c.snapshot
				d := start(t, language, settings)

				if c.fails == "" {
					await(t, d, "the last event", has("end"))
					stop(t, d)
				}

				lines := await(t, d, "its end", ended)
				name := ""
				if failure := lines[len(lines)-1].Error; failure != nil {
					name = failure.Name
					if !failure.Permanent {
						t.Errorf("ended with %+v, which is not permanent", failure)
					}
				}

				if name != c.fails {
					t.Errorf("ended with %q (%+v), want %q", name, lines[len(lines)-1].Error, c.fails)
				}

				want := strings.TrimPrefix(c.ids, "s1.cursor? ")
				if got := strings.Join(conformance.IDs(lines), " "); got != want {
					t.Errorf("delivered %q, want %q", got, want)
				}

				since, tokens := s.asked()
				if since != c.asked || tokens != c.tokens {
					t.Errorf("asked since %q with tokens %q, want %q with %q", since, tokens, c.asked, c.tokens)
				}
				if got := reported(lines); got != c.reported {
					t.Errorf("reported %q, want %q", got, c.reported)
				}
			})
		})
	}
}

// reported returns the errors of the status changes.
func reported(lines []conformance.Line) string {
	var names []string
	for _, line := range conformance.Of(lines, "status") {
		if line.State == "waiting" {
			names = append(names, line.Error.Name)
		}
	}
	return strings.Join(names, " ")
}

// TestSnapshotComesFirst also checks that clients ignore unknown members.
func TestSnapshotComesFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{streams: []script{{events: []string{"end"}, stay: true}}}).start(t)
		settings := s.settings()
		settings.Snapshot = true
		d := start(t, language, settings)
		lines := await(t, d, "the event", has("end"))
		if lines[0].Kind != "snapshot" || lines[0].Cursor != "s1.cursor" ||
			strings.Join(lines[0].Agents, " ") != "1001" {
			t.Errorf("it begins with %+v", lines[0])
		}

		var facts map[string]any
		event := conformance.Of(lines, "event")[0]
		if err := json.Unmarshal(event.Facts, &facts); err != nil {
			t.Fatal(err)
		}
		if facts["name"] != "agent.login" || facts["agent_id"] != "1001" || facts["state"] != "available" ||
			facts["wait_ms"] != 0.0 {
			t.Errorf("the facts are %v", facts)
		}
	})
}

func TestLogin(t *testing.T) {
	t.Parallel()
	filters := map[string][]string{"account_ids": {"demo"}, "event_types": {"AGENT_LOGIN"}, "queue_ids": {"q"},
		"agent_ids": {"1001"}, "call_ids": {"c"}, "names": {"agent.*"}}

	const filtersJSON = `"account_ids":["demo"],"agent_ids":["1001"],"call_ids":["c"],"event_types":["AGENT_LOGIN"],"names":["agent.*"],"queue_ids":["q"]`
	for _, c := range []struct {
		name         string
		change       func(*conformance.Settings)
		body         string
		header, want string // of the login request
	}{
		{"a user", func(*conformance.Settings) {},
			`{` + strings.Replace(filtersJSON, `"event_types"`, `"domain":"demo.local","event_types"`, 1),
			"Authorization", ""},
		{"a portal token",
			func(s *conformance.Settings) { s.Username, s.Password, s.Domain, s.PortalToken = "", "", "", "portal" },
			`{` + filtersJSON + `}`, "Authorization", "Bearer portal"},
		{"an API key", func(s *conformance.Settings) { s.Username, s.Password, s.Domain, s.APIKey = "", "", "", "key" },
			`{` + filtersJSON + `}`, "X-Api-Key", "key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, language string) {
				s := (&server{streams: []script{{events: []string{"end"}, stay: true}}}).start(t)
				settings := s.settings()
				settings.Filters = filters
				c.change(&settings)
				await(t, start(t, language, settings), "the event", has("end"))
				s.mu.Lock()
				defer s.mu.Unlock()

				var body map[string]any
				if err := json.Unmarshal([]byte(s.bodies[0]), &body); err != nil {
					t.Fatal(err)
				}

				sorted, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}

				want := c.body
				if settings.Username != "" {
					want += `,"password":"pw","queue_ids":["q"],"username":"alice"}`
					want = strings.Replace(want, `"queue_ids":["q"],"password":"pw",`, `"password":"pw",`, 1)
				}
				if string(sorted) != want || s.headers[0].Get(c.header) != c.want {
					t.Errorf("logged in with %s and %s %q, want %s and %q", sorted, c.header,
						s.headers[0].Get(c.header), want, c.want)
				}
			})
		})
	}
}

func TestTokenIsRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{life: 1,
			streams: []script{{events: []string{"a"}, stay: true},
				{events: []string{"a", "end"}, stay: true}}}).start(t)
		d := start(t, language, s.settings())
		await(t, d, "the event after the renewal", has("end"))
		lines := stop(t, d)
		since, tokens := s.asked()
		if got := reported(lines); got != "" || since != "|a.cursor" || tokens != "token1 token2" ||
			len(conformance.IDs(lines)) != 2 {
			t.Errorf("reported %q, asked since %q with %q, delivered %v", got, since, tokens, conformance.IDs(lines))
		}
	})
}

func TestOldTokenServesWhileTheRenewalFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{life: 10, loginStatuses: []int{200, 503},
			streams: []script{{stay: true}, {events: []string{"end"}, stay: true}}}).start(t)
		d := start(t, language, s.settings())
		await(t, d, "the event", has("end"))

		if _, tokens := s.asked(); tokens != "token1 token1" {
			t.Errorf("connected with %q", tokens)
		}
	})
}

func TestSilentServerIsReplaced(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{streams: []script{{events: []string{"a"}, stay: true}, {mute: true},
			{events: []string{"end"}, stay: true}}}).start(t)
		settings := s.settings()
		settings.Silence = 500
		d := start(t, language, settings)
		lines := await(t, d, "the next connection", has("end"))
		if got := reported(lines); got != "ConnectionLostError ConnectionLostError" {
			t.Errorf("reported %q", got)
		}
	})
}

func TestPositionIsKeptAcrossRestarts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{streams: []script{{events: []string{"a", "b"}, stay: true}, {events: []string{"c"}, stay: true},
			{events: []string{"end"}, stay: true}}}).start(t)
		settings := s.settings()
		settings.Since, settings.Store = "earliest", filepath.Join(t.TempDir(), "position")

		for _, last := range []string{"b", "c", "end"} {
			d := start(t, language, settings)
			await(t, d, last, has(last))
			stop(t, d)
		}

		if since, _ := s.asked(); since != "earliest|b.cursor|c.cursor" {
			t.Errorf("asked since %q", since)
		}
	})
}

// TestPositionDoesNotPassAnEventInWork kills a program while it processes an event: the next run
// must receive the event again.
func TestPositionDoesNotPassAnEventInWork(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{streams: []script{{events: []string{"a"}, close: 1012}, {events: []string{"b", "c"}, stay: true},
			{events: []string{"end"}, stay: true}}}).start(t)
		settings := s.settings()
		settings.Store = filepath.Join(t.TempDir(), "position")
		settings.PauseAt = "b"
		d := start(t, language, settings)
		await(t, d, "b", has("b"))
		d.Close()
		await(t, start(t, language, settings), "the end", has("end"))

		if since, _ := s.asked(); since != "|a.cursor|a.cursor" {
			t.Errorf("asked since %q", since)
		}
	})
}

// TestBackOff checks that waits grow with jitter, that clients obey Retry-After, and that the
// back-off restarts once the server has sent data.
func TestBackOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		s := (&server{streams: []script{
			{refuse: 500}, {refuse: 500}, {refuse: 500}, {refuse: 503, after: 1}, {events: []string{"a"}},
			{refuse: 500}, {close: 1012}, {events: []string{"end"}, stay: true},
		}}).start(t)
		settings := s.settings()
		settings.RetryMin, settings.RetryMax = 20, 100
		lines := await(t, start(t, language, settings), "the end", has("end"))
		bounds := [][2]float64{{10, 20}, {20, 40}, {40, 80}, {1050, 1100}, {10, 20}, {20, 40}, {0, 80}}
		waits := 0

		for _, line := range conformance.Of(lines, "status") {
			if line.State != "waiting" {
				continue
			}
			if bound := bounds[waits]; line.RetryIn < bound[0]-1 || line.RetryIn > bound[1]+1 {
				t.Errorf("wait %d is %.1f ms, want %v", waits, line.RetryIn, bound)
			}

			waits++
		}

		if waits != len(bounds) {
			t.Errorf("%d waits, want %d", waits, len(bounds))
		}

		for i := 1; i < len(s.arrived) && i <= 4; i++ {
			if got := float64(s.arrived[i].Sub(s.arrived[i-1]).Microseconds()) / 1000; got < bounds[i-1][0]-2 {
				t.Errorf("attempt %d came after %.1f ms, want at least %v", i, got, bounds[i-1][0])
			}
		}
	})
}

// TestSlowReaderIsNotReadAhead has a program that stops reading: the client must not read ahead
// into memory, so that the server sees the back-pressure.
func TestSlowReaderIsNotReadAhead(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		large := make([]string, 75) // 24 MiB
		filler := strings.Repeat("x", 320<<10)
		for i := range large {
			large[i] = `data: {"id":"l` + string(rune('A'+i%26)) + strings.Repeat("l", i/26) + `","data":{"x":"` +
				filler + `"}}`
		}

		s := (&server{streams: []script{{events: append([]string{"a"}, large...), close: 4008},
			{events: []string{"end"}, stay: true}}}).start(t)
		settings := s.settings()
		settings.PauseAt = "a"
		d := start(t, language, settings)
		await(t, d, "the first", has("a"))
		time.Sleep(300 * time.Millisecond) // enough for a client without back-pressure to read everything
		before := len(conformance.IDs(d.Lines()))

		if since, _ := s.asked(); since != "" {
			t.Errorf("the client read everything: it asked since %q", since)
		}
		if err := d.Do("resume"); err != nil {
			t.Fatal(err)
		}

		lines := await(t, d, "the end", has("end"))
		if got := len(conformance.IDs(lines)); got != 77 || before != 1 {
			t.Errorf("%d events, %d while it was held", got, before)
		}
		if got := reported(lines); got != "TooSlowError" {
			t.Errorf("reported %q", got)
		}
	})
}

func TestServerThatIsNotThereIsWaitedFor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, language string) {
		gone := httptest.NewServer(nil)
		address := gone.Listener.Addr().String()
		gone.Close()
		settings := (&server{Server: gone}).settings()
		settings.RetryMin, settings.RetryMax = 50, 100
		d := start(t, language, settings)
		lines := await(t, d, "three attempts", func(lines []conformance.Line) bool { return len(lines) >= 3 })
		if got := reported(lines[:3]); got != "ConnectionLostError ConnectionLostError ConnectionLostError" {
			t.Errorf("%s: reported %q", address, got)
		}

		stop(t, d)
	})
}

func TestStrangeCertificateStopsIt(t *testing.T) {
	t.Parallel()
	s := &server{streams: []script{{events: []string{"end"}, stay: true}}}
	web := httptest.NewUnstartedServer(s)
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that clients abort
	web.StartTLS()
	s.Server = web

	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})

	file := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}

	t.Run("clients", func(t *testing.T) {
		each(t, func(t *testing.T, language string) {
			lines := await(t, start(t, language, s.settings()), "its end", ended)
			if failure := lines[len(lines)-1].Error; failure == nil || failure.Name != "CertificateError" ||
				!failure.Permanent {
				t.Errorf("ended with %+v", failure)
			}

			settings := s.settings()
			settings.CA = file
			cmd := command(t, language)
			cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+file)
			d, err := conformance.Start(cmd, settings)
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(d.Close)
			await(t, d, "the event", has("end"))
		})
	})
}
