package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// paths is one of the channel's two sets of endpoints.
type paths struct{ login, socket, stream, health, stats string }

var (
	apiPaths = paths{
		"/api/v2/cc_events_channel/login", "/api/v2/cc_events_channel/ws", "/api/v2/cc_events_channel/stream",
		"/api/v2/cc_events_channel/health", "/api/v2/cc_events_channel/stats",
	}
	wsPaths = paths{
		"/ws/v1/cc_events/login", "/ws/v1/cc_events", "/ws/v1/cc_events/stream",
		"/ws/v1/cc_events/health", "/ws/v1/cc_events/stats",
	}
)

// event is a message of the channel.
type event struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	AccountID string          `json:"account_id"`
	Timestamp int64           `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
	Metadata  *metadata       `json:"metadata"`
}

type metadata struct {
	Source         string `json:"source"`
	OriginalFormat string `json:"original_format"`
	ProcessedAt    int64  `json:"processed_at"`
	QueueID        string `json:"queue_id"`
}

// answer is a complete HTTP response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, bytes.TrimSpace(a.body)) }

// call sends one request to the public listener.
func (n *node) call(ctx context.Context, method, path string, header map[string]string, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, method, n.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}

	for name, value := range header {
		request.Header.Set(name, value)
	}

	response, err := n.web.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, text}, err
}

// mustCall is call for a request that must get a response.
func (n *node) mustCall(t testing.TB, method, path string, header map[string]string, body string) answer {
	t.Helper()
	a, err := n.call(t.Context(), method, path, header, body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

const typeJSON = "application/json"

// post sends a body to the ingest endpoint of a format.
func (n *node) post(t testing.TB, key, format, contentType, body string) answer {
	t.Helper()
	return n.mustCall(t, http.MethodPost, "/api/v2/ingest/"+format,
		map[string]string{"X-API-Key": key, "Content-Type": contentType}, body)
}

// postAccepted posts a body, which must be accepted with the given number of records. The node may not
// have a new account for up to a second.
func (n *node) postAccepted(t testing.TB, key, format, contentType, body string, records int) {
	t.Helper()
	want := fmt.Sprintf(`{"accepted":%d}`, records)
	eventuallyWithin(t, patience, "a body to be accepted", func() error {
		a := n.post(t, key, format, contentType, body)
		if a.status == http.StatusAccepted && string(bytes.TrimSpace(a.body)) == want {
			return nil
		}
		if a.status != http.StatusForbidden {
			t.Fatalf("ingest of %s answers %s, want 202 %s", format, a, want)
		}

		return fmt.Errorf("%s", a)
	})
}

// credentials are the body of the channel's login: the user, and the filters.
type credentials struct {
	Username   string   `json:"username"`
	Password   string   `json:"password"`
	Domain     string   `json:"domain"`
	AccountIDs []string `json:"account_ids,omitempty"`
	EventTypes []string `json:"event_types,omitempty"`
}

const password = "only-for-tests-42"

func user(name string) credentials {
	return credentials{Username: name, Password: password, Domain: "demo.local"}
}

func (w credentials) accounts(ids ...string) credentials { w.AccountIDs = ids; return w }
func (w credentials) types(names ...string) credentials  { w.EventTypes = names; return w }

func (n *node) tryLogin(t testing.TB, p paths, w credentials) answer {
	t.Helper()
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return n.mustCall(t, http.MethodPost, p.login, map[string]string{"Content-Type": typeJSON}, string(body))
}

// login returns a token of the channel.
func (n *node) login(t testing.TB, p paths, w credentials) (token string) {
	t.Helper()
	a := n.tryLogin(t, p, w)
	var got struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK || got.AccessToken == "" ||
		got.ExpiresIn <= 0 {
		t.Fatalf("login of %s answers %s", w.Username, a)
	}

	return got.AccessToken
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

// statistics is the response of the stats endpoint.
type statistics struct {
	Total   int `json:"total_connections"`
	Clients []struct {
		ID          string `json:"id"`
		AccountID   string `json:"account_id"`
		ConnectedAt int64  `json:"connected_at"`
		LastPing    int64  `json:"last_ping"`
	} `json:"clients"`
	Timestamp int64 `json:"timestamp"`
}

func (n *node) stats(t testing.TB, p paths, token string) statistics {
	t.Helper()
	var s statistics
	n.readJSON(t, p.stats, bearer(token), &s)
	return s
}

// health is the response of the health endpoint.
type health struct {
	Status    string `json:"status"`
	Total     int    `json:"total_connections"`
	Timestamp int64  `json:"timestamp"`
}

func (n *node) health(t testing.TB, p paths) health {
	t.Helper()
	var h health
	n.readJSON(t, p.health, nil, &h)
	return h
}

// awaitHealth waits for a status and a number of connections; -1: any.
func (n *node) awaitHealth(t testing.TB, status string, total int, limit time.Duration) {
	t.Helper()
	eventuallyWithin(t, limit, fmt.Sprintf("%s to be %s with %d connections", n.name, status, total), func() error {
		if h := n.health(t, apiPaths); h.Status != status || total >= 0 && h.Total != total {
			return fmt.Errorf("it is %s with %d", h.Status, h.Total)
		}
		return nil
	})
}

// readJSON requests a JSON response with exactly the fields of to.
func (n *node) readJSON(t testing.TB, path string, header map[string]string, to any) {
	t.Helper()
	a := n.mustCall(t, http.MethodGet, path, header, "")
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil || a.status != http.StatusOK {
		t.Fatalf("GET %s answers %s (%v)", path, a, err)
	}
}
