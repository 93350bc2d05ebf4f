package fanout

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/internal/fault"
)

// node is one fanout behind a real server on loopback.
type node struct {
	*Fanout
	url   string
	close func()
}

// testConfig gives the settings that a test leaves at zero their defaults, except
// that the number of connections is not limited.
func testConfig(cfg Config, node string) Config {
	cfg.NodeID = cmp.Or(cfg.NodeID, node)
	unlimited := DefaultSettings()
	unlimited.MaxConnectionsPerAccount, unlimited.MaxConnectionsPerUser, unlimited.MaxConnectionsPerAddress = 0, 0, 0

	set, defaults := reflect.ValueOf(&cfg.Settings).Elem(), reflect.ValueOf(unlimited)
	for i := range set.NumField() {
		if set.Field(i).IsZero() {
			set.Field(i).Set(defaults.Field(i))
		}
	}

	return cfg
}

func startNode(t *testing.T, cfg Config, log Log, directory *memoryDirectory, presence Presence, tls bool) *node {
	t.Helper()
	return startWith(t, cfg, Deps{LogReader: log, Auth: directory, Directory: directory, Presence: presence}, tls)
}

func startLimited(t *testing.T, cfg Config, log Log, directory *memoryDirectory, presence Presence,
	limits Limits) *node {
	t.Helper()
	return startWith(t, cfg,
		Deps{LogReader: log, Auth: directory, Directory: directory, Presence: presence, Limits: limits}, false)
}

func startWith(t *testing.T, cfg Config, deps Deps, tls bool) *node {
	t.Helper()
	deps.Metrics, deps.Log = prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil))
	f, err := New(testConfig(cfg, "node-"+t.Name()), deps)
	if err != nil {
		t.Fatal(err)
	}

	mux := http.NewServeMux()
	serve := func(what func(http.ResponseWriter, Request) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-ID", "request-1")
			host, _, _ := net.SplitHostPort(r.RemoteAddr)
			if err := what(w, Request{HTTP: r, Address: host}); err != nil {
				status := map[fault.Kind]int{fault.KindInvalid: 400, fault.KindUnauthenticated: 401,
					fault.KindForbidden: 403,
					fault.KindGone:      410, fault.KindUpgrade: 426, fault.KindLimited: 429,
					fault.KindUnavailable: 503}[fault.KindOf(err)]
				http.Error(w, err.Error(), max(status, 400))
			}
		}
	}

	mux.HandleFunc("/ws", serve(f.ServeWebSocket))
	mux.HandleFunc("/stream", serve(f.ServeEventStream))
	server := httptest.NewUnstartedServer(mux)
	server.Listener = conn.NewListener(server.Listener)

	if tls {
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()

	n := &node{Fanout: f, url: server.URL, close: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		server.Close()
	})}

	t.Cleanup(n.close)
	return n
}

// testClient is a WebSocket client of the channel.
type testClient struct {
	t  *testing.T
	ws *websocket.Conn
}

func (n *node) dial(t *testing.T, token, query string) *testClient {
	t.Helper()
	c, response, err := n.tryDial(token, query)
	if err != nil {
		status := 0
		if response != nil {
			status = response.StatusCode
		}
		t.Fatalf("dial %s: %v (status %d)", query, err, status)
	}

	t.Cleanup(func() { _ = c.Close() })
	return &testClient{t, c}
}

func (n *node) tryDial(token, query string) (*websocket.Conn, *http.Response, error) {
	dialer := *websocket.DefaultDialer
	dialer.TLSClientConfig = insecure
	return dialer.Dial("ws"+strings.TrimPrefix(n.url, "http")+"/ws?token="+token+"&"+query, nil)
}

const patience = 3 * time.Minute

// next is the next message.
func (c *testClient) next() map[string]any {
	c.t.Helper()
	_ = c.ws.SetReadDeadline(time.Now().Add(patience))
	_, data, err := c.ws.ReadMessage()
	if err != nil {
		c.t.Fatalf("reading: %v", err)
	}

	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		c.t.Fatalf("message %q: %v", data, err)
	}

	return m
}

// numbers are the source offsets of the next count events.
func (c *testClient) numbers(count int) []int {
	c.t.Helper()
	var got []int
	for len(got) < count {
		if m := c.next(); m["cursor"] == nil {
			got = append(got, number(m))
		}
	}
	return got
}

func number(m map[string]any) int { return int(m["data"].(map[string]any)["n"].(float64)) }

// closed waits for the server's close frame, letting events pass.
func (c *testClient) closed() *websocket.CloseError {
	c.t.Helper()
	for {
		_ = c.ws.SetReadDeadline(time.Now().Add(patience))
		if _, _, err := c.ws.ReadMessage(); err != nil {
			var e *websocket.CloseError
			if !errors.As(err, &e) {
				c.t.Fatalf("ended without a close frame: %v", err)
			}
			return e
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sourceOffsets are the offsets of raw records from one to before another, for memoryLog.put.
func sourceOffsets(from, to int) []int64 {
	var all []int64
	for i := from; i < to; i++ {
		all = append(all, int64(i))
	}
	return all
}

// rising are the same as numbers of events.
func rising(from, to int) []int {
	var all []int
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// ids reads up to count events and returns their ids.
func (c *testClient) ids(count int) (ids []event.ID) {
	c.t.Helper()
	for len(ids) < count {
		m := c.next()
		if m["cursor"] != nil {
			continue
		}

		id, err := event.ParseID(m["id"].(string))
		if err != nil {
			c.t.Fatal(err)
		}

		ids = append(ids, id)
	}

	return ids
}

var insecure = &tls.Config{InsecureSkipVerify: true} // the test server's own certificate
