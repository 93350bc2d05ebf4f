package channelclient

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// visit is what the server does with one connection, in order: refuse it, or
// send frames and then close or drop it.
type visit struct {
	refuse int      // HTTP status instead of the upgrade
	frames []string // ids, or whole frames that begin with {
	close  int      // close code; 0: drop the connection without one
	stay   bool     // instead of closing, wait until the client goes
}

// server plays visits, the last one for ever, and notes what clients asked.
type server struct {
	logins []int // status of each login; after the last: 200
	visits []visit

	mu     sync.Mutex
	login  []string // bodies
	since  []string // of each upgrade
	tokens []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/login") {
		s.serveLogin(w, r)
		return
	}
	if r.URL.Query().Get("cursor") != "true" {
		http.Error(w, "no cursor asked for", http.StatusBadRequest)
		return
	}
	s.since = append(s.since, r.URL.Query().Get("since"))
	s.tokens = append(s.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	v := s.visits[min(len(s.since), len(s.visits))-1]
	if v.refuse != 0 {
		refuse(w, v.refuse)
		return
	}
	socket, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	go play(socket, v)
}

func (s *server) serveLogin(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.login = append(s.login, string(body))
	if n := len(s.login); n <= len(s.logins) && s.logins[n-1] != http.StatusOK {
		refuse(w, s.logins[n-1])
		return
	}
	_, _ = w.Write([]byte(`{"access_token":"token` + strconv.Itoa(len(s.login)) + `","expires_in":86400}`))
}

func refuse(w http.ResponseWriter, status int) {
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"success":false,"message":"no"}`))
}

func play(socket *websocket.Conn, v visit) {
	defer socket.Close()
	for _, frame := range v.frames {
		if !strings.HasPrefix(frame, "{") {
			frame = `{"id":"` + frame + `","type":"AGENT_LOGIN"}`
		}
		if socket.WriteMessage(websocket.TextMessage, []byte(frame)) != nil {
			return
		}
	}
	if v.stay {
		_, _, _ = socket.ReadMessage()
		return
	}
	if v.close != 0 {
		_ = socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(v.close, "bye"), time.Now().Add(time.Second))
		_, _, _ = socket.ReadMessage()
	}
}

func config(url string) Config {
	return Config{
		URL: url, Paths: PathsAPI, Username: "alice", Password: "pw", Domain: "demo.local",
		RetryMin: time.Millisecond, RetryMax: 2 * time.Millisecond,
	}
}

// listen runs a client until it has the event "end", or ends by itself.
func listen(t *testing.T, s *server, cfg Config) (ids []string, err error) {
	t.Helper()
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = client.Run(ctx, func(m Message) error {
		ids = append(ids, m.ID)
		if m.ID == "end" {
			cancel()
		}
		return nil
	})
	if err == nil && !slices.Contains(ids, "end") {
		t.Fatalf("timed out with %q", ids)
	}
	return ids, err
}

func TestRun(t *testing.T) {
	const cursor1, cursor2 = `{"cursor":"b.0-1"}`, `{"cursor":"c.0-2"}`
	for _, c := range []struct {
		name   string
		since  string
		logins []int
		visits []visit
		ids    string // delivered
		asked  string // since of each upgrade, joined by |
		tokens string // of each upgrade
		fails  string // the error Run ends with
	}{
		{name: "goes on after its last event where there are no cursors", visits: []visit{
			{frames: []string{"a", "b"}, close: 1012}, {frames: []string{"end"}, stay: true},
		}, ids: "a b end", asked: "|b", tokens: "token1 token1"},
		{name: "goes on after its last cursor and drops what comes again", visits: []visit{
			{frames: []string{"a", "b", cursor1, "c", "d"}}, {frames: []string{"d", "c", "e", cursor2}}, {frames: []string{"end"}, stay: true},
		}, ids: "a b c d e end", asked: "|b.0-1|c.0-2", tokens: "token1 token1 token1"},
		{name: "begins where it was told, again until something came", since: "earliest", visits: []visit{
			{close: 1011}, {frames: []string{"end"}, stay: true},
		}, ids: "end", asked: "earliest|earliest", tokens: "token1 token1"},
		{name: "logs in again when the token has expired", visits: []visit{
			{frames: []string{"a"}, close: 4001}, {frames: []string{"end"}, stay: true},
		}, ids: "a end", asked: "|a", tokens: "token1 token2"},
		{name: "logs in again when the token is refused", visits: []visit{
			{refuse: 401}, {frames: []string{"end"}, stay: true},
		}, ids: "end", asked: "|", tokens: "token1 token2"},
		{name: "comes back to a server that is busy, away, draining or too fast", logins: []int{503, 429, 500}, visits: []visit{
			{refuse: 503}, {refuse: 429}, {close: 1001}, {close: 4008}, {frames: []string{"end"}, stay: true},
		}, ids: "end", asked: "||||", tokens: "token4 token4 token4 token4 token4"},
		{name: "stops when its password is wrong", logins: []int{401}, fails: "login refused: 401 Unauthorized: no"},
		{name: "stops when its filters are wrong", logins: []int{400}, fails: "login refused: 400 Bad Request: no"},
		{name: "stops when its place is gone", since: "b", visits: []visit{{refuse: 410}}, asked: "b", tokens: "token1",
			fails: "upgrade refused: 410 Gone: no"},
		{name: "stops when access is revoked", visits: []visit{{frames: []string{"a"}, close: 4003}}, ids: "a", tokens: "token1",
			fails: "4003"},
		{name: "stops when it is replaced", visits: []visit{{close: 4009}}, tokens: "token1", fails: "4009"},
		{name: "stops when the server calls it a misuse", visits: []visit{{close: 1008}}, tokens: "token1", fails: "1008"},
		{name: "stops at what is not JSON", visits: []visit{{frames: []string{"{"}, stay: true}}, tokens: "token1", fails: "not JSON"},
		{name: "stops at an event without an id", visits: []visit{{frames: []string{`{"type":"x"}`}, stay: true}}, tokens: "token1", fails: "no id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &server{logins: c.logins, visits: c.visits}
			web := httptest.NewServer(s)
			defer web.Close()
			cfg := config(web.URL)
			cfg.Since = c.since
			ids, err := listen(t, s, cfg)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("ended with %v, want %q", err, c.fails)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := strings.Join(ids, " "); got != c.ids {
				t.Errorf("delivered %q, want %q", got, c.ids)
			}
			if got := strings.Join(s.since, "|"); got != c.asked {
				t.Errorf("asked since %q, want %q", got, c.asked)
			}
			if got := strings.Join(s.tokens, " "); got != c.tokens {
				t.Errorf("tokens %q, want %q", got, c.tokens)
			}
		})
	}
}

func TestLoginSendsTheFilters(t *testing.T) {
	s := &server{visits: []visit{{frames: []string{"end"}, stay: true}}}
	web := httptest.NewServer(s)
	defer web.Close()
	cfg := config(web.URL)
	cfg.Paths, cfg.Filter = PathsWS, Filter{AccountIDs: []string{"demo"}, EventTypes: []string{"AGENT_LOGIN"}}
	if _, err := listen(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	want := `{"username":"alice","password":"pw","domain":"demo.local","account_ids":["demo"],"event_types":["AGENT_LOGIN"]}`
	if len(s.login) != 1 || s.login[0] != want {
		t.Errorf("logged in with %s", s.login)
	}
}

func TestRunEndsWithDeliversError(t *testing.T) {
	web := httptest.NewServer(&server{visits: []visit{{frames: []string{"a"}, stay: true}}})
	defer web.Close()
	client, err := New(config(web.URL))
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	if err := client.Run(t.Context(), func(Message) error { return full }); !errors.Is(err, full) {
		t.Errorf("ended with %v", err)
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	web := httptest.NewServer(&server{visits: []visit{{stay: true}, {frames: []string{"end"}, stay: true}}})
	defer web.Close()
	cfg := config(web.URL)
	cfg.Silence = 20 * time.Millisecond
	if _, err := listen(t, nil, cfg); err != nil {
		t.Error(err)
	}
}

func TestServerThatIsNotThereIsWaitedFor(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(&server{visits: []visit{{frames: []string{"end"}, stay: true}}})
	cfg := config("http://" + listener.Addr().String())
	listener.Close()
	var once sync.Once
	cfg.Status = func(string) { // the first failure brings the server up
		once.Do(func() {
			if web.Listener, err = net.Listen("tcp", listener.Addr().String()); err == nil {
				web.Start()
			}
		})
	}
	ids, runErr := listen(t, nil, cfg)
	if err != nil || runErr != nil || !slices.Equal(ids, []string{"end"}) {
		t.Error(ids, err, runErr)
	}
	web.Close()
}

func TestTrust(t *testing.T) {
	web := httptest.NewUnstartedServer(&server{visits: []visit{{frames: []string{"end"}, stay: true}}})
	web.Config.ErrorLog = log.New(io.Discard, "", 0) // of the stranger
	web.StartTLS()
	defer web.Close()
	file := filepath.Join(t.TempDir(), "cert.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, trust := range map[string]Trust{"its certificate": {Files: []string{file}}, "everyone": {Insecure: true}} {
		t.Run(name, func(t *testing.T) {
			tlsConfig, err := trust.Config()
			if err != nil {
				t.Fatal(err)
			}
			cfg := config(web.URL)
			cfg.TLS = tlsConfig
			if _, err := listen(t, nil, cfg); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("a stranger stops it", func(t *testing.T) {
		tlsConfig, err := Trust{}.Config()
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(web.URL)
		cfg.TLS = tlsConfig
		if _, err := listen(t, nil, cfg); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("no certificate in the file", func(t *testing.T) {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := (Trust{Files: []string{file}}).Config(); err == nil {
			t.Error("an empty file was taken")
		}
	})
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"scheme":   func(c *Config) { c.URL = "wss://x" },
		"host":     func(c *Config) { c.URL = "https://" },
		"userinfo": func(c *Config) { c.URL = "https://a:b@x" },
		"paths":    func(c *Config) { c.Paths = "both" },
		"password": func(c *Config) { c.Password = "" },
	} {
		cfg := config("https://x")
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestRecentIsBounded(t *testing.T) {
	r := newRecent(10)
	for i := range 1000 {
		id := strconv.Itoa(i)
		if !r.add(id) || r.add(id) {
			t.Fatalf("id %s is new once", id)
		}
		if i >= 10 && r.add(strconv.Itoa(i-9)) {
			t.Fatalf("id %d was forgotten at %d", i-9, i)
		}
		if n := len(r.current) + len(r.previous); n > 20 {
			t.Fatalf("%d ids are kept", n)
		}
	}
}
