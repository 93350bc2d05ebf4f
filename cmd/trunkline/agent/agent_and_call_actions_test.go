package agent_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/agent"
	"trunkline/cmd/trunkline/call"
	"trunkline/cmd/trunkline/savedlogin"
)

// server is a scripted Trunkline.
type server struct {
	mu       sync.Mutex
	requests []string // path and body of actions
	endState string   // of each action, when it is asked for
	refusal  string   // message of a 409
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()

	body, _ := io.ReadAll(r.Body)
	answer := func(status int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(value)
	}

	switch {
	case r.URL.Path == "/ucp/v2/login":
		answer(200, map[string]any{"access_token": "a", "refresh_token": "r", "expires_in": 3600,
			"user": map[string]string{"account_id": "demo"}})
	case r.URL.Path == "/ws/v1/cc_events/login":
		answer(200, map[string]string{"access_token": "channel"})
	case r.URL.Path == "/ws/v1/cc_events/snapshot" && r.Header.Get("Authorization") == "Bearer channel":
		answer(200, map[string]any{"agents": []map[string]any{{"agent_id": "1001@x", "agent_name": "Anna\u001b[31m",
			"state": "break", "reason": "lunch", "queues": []string{"sales@x"}}}})
	case strings.HasSuffix(r.URL.Path, "/actions") && s.refusal != "":
		answer(409, map[string]string{"message": s.refusal})
	case strings.HasSuffix(r.URL.Path, "/actions"):
		s.requests = append(s.requests, r.URL.EscapedPath()+" "+string(body))
		answer(202, map[string]string{"action_id": "9b2f"})
	case r.URL.Path == "/api/v2/actions/9b2f":
		answer(200, map[string]string{"action_id": "9b2f", "state": s.endState, "event_id": "cc_evt_1",
			"message": "No event of the platform within 10 s"})
	default:
		answer(404, map[string]string{"message": r.URL.Path})
	}
}

// Each command asks for its action and follows it to its end.
func TestActionsOfAgentsAndCalls(t *testing.T) {
	s := &server{endState: "confirmed"}
	trunkline := httptest.NewUnstartedServer(s)
	trunkline.EnableHTTP2 = true // as the server has it
	trunkline.StartTLS()
	defer trunkline.Close()

	e := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{savedlogin.LoginCommand(p), agent.Command(p), call.Command(p)}
	})
	e.Environ = []string{"HOME=" + t.TempDir(), "TRUNKLINE_PASSWORD=secret"}
	e.MustRun("login", "--url", trunkline.URL, "--insecure", "--username", "carla", "--domain", "x")

	if out := e.MustRun("agent", "list"); !strings.Contains(out, "1001@x") || !strings.Contains(out, "break (lunch)") ||
		strings.Contains(out, "\x1b") {
		t.Errorf("agent list prints %q", out)
	}

	var listed []struct {
		AgentID string `json:"agent_id"`
	}
	e.MustJSON(&listed, "agent", "list", "--json")

	if len(listed) != 1 || listed[0].AgentID != "1001@x" {
		t.Errorf("%+v", listed)
	}

	for line, want := range map[string]string{
		"agent login 1001@x":                   `agents/1001@x/actions {"action":"login"}`,
		"agent login PJSIP/1001 --queue sales": `agents/PJSIP%2F1001/actions {"action":"login","queue_id":"sales"}`,
		"agent logout 1001@x":                  `agents/1001@x/actions {"action":"logout"}`,
		"agent break 1001@x --reason lunch":    `agents/1001@x/actions {"action":"break","reason":"lunch"}`,
		"agent ready 1001@x":                   `agents/1001@x/actions {"action":"ready"}`,
		"agent join 1001@x --queue sales@x":    `agents/1001@x/actions {"action":"join","queue_id":"sales@x"}`,
		"agent leave 1001@x --queue sales@x":   `agents/1001@x/actions {"action":"leave","queue_id":"sales@x"}`,
		"call hangup c1":                       `calls/c1/actions {"action":"hangup"}`,
		"call transfer c1 7001":                `calls/c1/actions {"action":"transfer","destination":"7001"}`,
		"call listen c1":                       `calls/c1/actions {"action":"listen"}`,
	} {
		if out := e.MustRun(strings.Fields(line)...); out != "confirmed cc_evt_1\n" {
			t.Errorf("%s prints %q", line, out)
		}
		if !slices.Contains(s.requests, "/api/v2/"+want) {
			t.Errorf("%s: %q was not asked:\n%s", line, want, strings.Join(s.requests, "\n"))
		}
	}

	s.mu.Lock()
	s.endState = "unconfirmed"
	s.mu.Unlock()

	e.MustFail(cli.ExitFailed, "unconfirmed: No event of the platform", "agent", "break", "1001@x")
	s.mu.Lock()
	s.refusal = "Kazoo cannot do this (listen)"
	s.mu.Unlock()

	e.MustFail(cli.ExitFailed, "Kazoo cannot do this", "call", "listen", "c1")
	e.MustFail(cli.ExitUsage, "DESTINATION", "call", "transfer", "c1")
	e.MustFail(cli.ExitUsage, "AGENT", "agent", "break")
}
