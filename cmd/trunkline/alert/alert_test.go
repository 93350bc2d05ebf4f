package alert_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/alert"
	"trunkline/cmd/trunkline/savedlogin"
)

// server is a scripted Trunkline with two pages of alerts.
type server struct {
	mu      sync.Mutex
	queries []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()

	var answer any = map[string]any{"access_token": "a", "refresh_token": "r", "expires_in": 3600,
		"user": map[string]string{"account_id": "demo"}}
	if r.URL.Path == "/api/v2/alerts" {
		s.queries = append(s.queries, r.URL.RawQuery)
		row := map[string]any{"account_id": "demo", "state": "active", "alert_id": "1", "name": "Many wait\u001b[31m",
			"metric":   "waiting",
			"queue_id": "sales@x", "value": 7, "started_at": 1795686893.125}
		page := map[string]any{"data": []any{row}, "page_size": 1000, "next_start_key": "more"}

		if r.URL.Query().Get("start_key") == "more" {
			row["ended_at"] = 1795686903
			delete(page, "next_start_key")
		}

		answer = page
	}

	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func TestAlertList(t *testing.T) {
	s := &server{}
	trunkline := httptest.NewTLSServer(s)
	defer trunkline.Close()

	e := clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{savedlogin.LoginCommand(p), alert.Command(p)}
	})
	e.Environ = []string{"HOME=" + t.TempDir(), "TRUNKLINE_PASSWORD=secret"}
	e.MustRun("login", "--url", trunkline.URL, "--insecure", "--username", "carla", "--domain", "x")

	out := e.MustRun("alert", "list")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "Many wait") || !strings.Contains(lines[1], "sales@x") ||
		strings.Contains(out, "\x1b") ||
		!strings.HasSuffix(lines[1], "-") || !strings.Contains(lines[2], "2026-11-") {
		t.Errorf("alert list prints\n%s", out)
	}

	var listed []struct {
		Name    string
		EndedAt float64 `json:"ended_at"`
	}
	e.MustJSON(&listed, "alert", "list", "--json", "--since", "3d")

	if len(listed) != 2 || listed[1].EndedAt != 1795686903 {
		t.Errorf("%+v", listed)
	}

	e.MustFail(cli.ExitUsage, "--since is a duration", "alert", "list", "--since", "soon")
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.queries) != 4 || strings.Contains(s.queries[0], "state") || !strings.Contains(s.queries[2], "state=all") ||
		!strings.Contains(s.queries[2], "startDate=") {
		t.Errorf("queries %q", s.queries)
	}
}
