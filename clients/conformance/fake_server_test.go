package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/clients/conformance"
)

// script is the server's behaviour on one stream: it refuses it, or sends events and then closes or drops it.
type script struct {
	refuse int      // HTTP status instead of a stream
	after  int      // its Retry-After, seconds
	events []string // "id" or "id@cursor"; texts that begin with ":" or "data:" are sent unchanged
	close  int      // close code; 0: end without one
	mute   bool     // no answer at all
	stay   bool     // instead of closing, wait until the client disconnects
}

// server plays the streams, the last one repeatedly, and records the clients' requests.
type server struct {
	*httptest.Server
	loginStatuses    []int // of each login; after the last: 200
	snapshotStatuses []int // of each snapshot; after the last: 200
	life             int   // expires_in of the first token, seconds; 0: a day
	streams          []script

	mu        sync.Mutex
	bodies    []string // of logins
	headers   []http.Header
	since     []string // of each stream
	tokens    []string
	arrived   []time.Time // of each stream
	snapshots int         // requests so far
}

func (s *server) start(t *testing.T) *server {
	t.Helper()
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) settings() conformance.Settings {
	return conformance.Settings{URL: s.URL, Username: "alice", Password: "pw", Domain: "demo.local"}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/login"):
		s.serveLogin(w, r)
	case strings.HasSuffix(r.URL.Path, "/snapshot"):
		s.serveSnapshot(w)
	case strings.HasSuffix(r.URL.Path, "/stream"):
		s.mu.Lock()
		s.since = append(s.since, r.URL.Query().Get("since"))
		s.tokens = append(s.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		s.arrived = append(s.arrived, time.Now())
		v := s.streams[min(len(s.since), len(s.streams))-1]
		s.mu.Unlock()

		v.serve(w, r)
	default:
		http.NotFound(w, r)
	}
}

func status(statuses []int, n int) int {
	if n <= len(statuses) {
		return statuses[n-1]
	}
	return http.StatusOK
}

func (s *server) serveLogin(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()

	s.bodies, s.headers = append(s.bodies, string(body)), append(s.headers, r.Header)
	n := len(s.bodies)
	if code := status(s.loginStatuses, n); err != nil || code != http.StatusOK {
		refuse(w, code, 0)
		return
	}

	life := 86400
	if n == 1 && s.life != 0 {
		life = s.life
	}

	_, _ = fmt.Fprintf(w, `{"access_token":"token%d","expires_in":%d}`, n, life) // the client may have disconnected
}

func (s *server) serveSnapshot(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.snapshots++
	if code := status(s.snapshotStatuses, s.snapshots); code != http.StatusOK {
		refuse(w, code, 0)
		return
	}

	_, _ = fmt.Fprintf(w, `{"event_id":"s%d","cursor":"s%[1]d.cursor","timestamp":1795194155,"news":1,
		"agents":[{"account_id":"demo","agent_id":"1001","state":"available","status":"available","since":1,"news":1}],
		"calls":[],"queues":[{"account_id":"demo","queue_id":"q","waiting":0,"talking":0,"agents":{"available":1}}]}`,
		s.snapshots)
}

func refuse(w http.ResponseWriter, code, after int) {
	if after > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(after))
	}
	w.WriteHeader(code)
	_, _ = io.WriteString(w, `{"success":false,"message":"no","errors":[]}`) // the client may have disconnected
}

func (v script) serve(w http.ResponseWriter, r *http.Request) {
	if v.mute {
		<-r.Context().Done()
		return
	}
	if v.refuse != 0 {
		refuse(w, v.refuse, v.after)
		return
	}

	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.Flush() // the next write reports a disconnected client

	for _, event := range v.events {
		if _, err := io.WriteString(w, wire(event)); err != nil || out.Flush() != nil {
			return
		}
	}

	switch {
	case v.stay:
		<-r.Context().Done()
	case v.close != 0:
		_, _ = fmt.Fprintf(w, ": %d bye, last a\n\n", v.close) // the client may have disconnected
	case len(v.events) == 0:
		panic(http.ErrAbortHandler) // a client may discard the bytes just before a reset
	}
}

// wire returns an event in the server's format, with facts and an unknown member.
func wire(event string) string {
	if strings.HasPrefix(event, ":") || strings.HasPrefix(event, "data:") {
		return event + "\n\n"
	}

	id, cursor, given := strings.Cut(event, "@")
	if !given {
		cursor = id + ".cursor"
	}

	data, _ := json.Marshal(map[string]any{ // always marshals
		"id": id, "type": "AGENT_LOGIN", "account_id": "demo", "timestamp": 1795194155, "data": map[string]any{},
		"news": 1,
		"metadata": map[string]any{"source": "s", "original_format": "generic", "processed_at": 1795194155,
			"facts": map[string]any{"name": "agent.login", "agent_id": "1001", "state": "available", "wait_ms": 0,
				"news": "x"}},
	})

	return "id: " + cursor + "\ndata: " + string(data) + "\n\n"
}

func (s *server) asked() (since, tokens string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.since, "|"), strings.Join(s.tokens, " ")
}
