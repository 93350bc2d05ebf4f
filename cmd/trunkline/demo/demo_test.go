package demo

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p), directory.AccountCommand(p), directory.APIKeyCommand(p)}
	})
}

// ingest is the ingest endpoint of a server that answers its first posts with given statuses.
type ingest struct {
	answers []int // of the first posts; then 202
	onPost  func(n int)

	mu      sync.Mutex
	refused []string // bodies
	taken   []string // format and body
	keys    []string
}

func (i *ingest) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()

	format, posted := strings.CutPrefix(r.URL.Path, "/api/v2/ingest/")
	if !posted {
		_, _ = w.Write([]byte(`{"status":"ok"}`))
		return
	}

	body, _ := io.ReadAll(r.Body)
	i.keys = append(i.keys, r.Header.Get("X-API-Key"))
	if n := len(i.keys); n <= len(i.answers) && i.answers[n-1] != http.StatusAccepted {
		i.refused = append(i.refused, string(body))
		w.WriteHeader(i.answers[n-1])
		_, _ = w.Write([]byte(`{"success":false,"message":"no"}`))
		return
	}

	i.taken = append(i.taken, format+" "+string(body))
	w.WriteHeader(http.StatusAccepted)
	if i.onPost != nil {
		i.onPost(len(i.taken))
	}
}

func TestDemoSendsAsTheSourcesWould(t *testing.T) {
	server := &ingest{}
	web := httptest.NewServer(server)
	defer web.Close()

	w := newRunner(t)
	code, out, errs := w.Run("demo", "--url", web.URL, "--api-key", "k", "--count", "60", "--rate", "1000", "--seed",
		"4")
	if code != cli.ExitOK || out != "" || !strings.Contains(errs, "trunkline: 60 events sent\n") ||
		strings.Contains(errs, "k\n") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	if len(server.taken) != 60 || slices.Contains(server.keys, "") {
		t.Errorf("%d events received", len(server.taken))
	}

	for _, format := range []string{"svc.cc {", "generic {", "freeswitch.callcenter {"} {
		if !slices.ContainsFunc(server.taken, func(s string) bool { return strings.HasPrefix(s, format) }) {
			t.Errorf("no %s received", format)
		}
	}
}

func TestDemoLosesNothingToABusyServer(t *testing.T) {
	server := &ingest{answers: []int{401, 202, 503, 429, 500}}
	web := httptest.NewServer(server)
	defer web.Close()

	w := newRunner(t)
	if code, _, errs := w.Run("demo", "--url", web.URL, "--api-key", "k", "--count", "3", "--rate",
		"1000"); code != cli.ExitOK {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	if len(server.taken) != 3 || len(server.refused) != 4 {
		t.Fatalf("%d accepted, %d refused", len(server.taken), len(server.refused))
	}

	for _, n := range []int{1, 2, 3} {
		if !strings.HasSuffix(server.taken[1], server.refused[n]) {
			t.Errorf("%s was not sent again", server.refused[n])
		}
	}
}

func TestDemoStopsWhenItIsRefused(t *testing.T) {
	server := &ingest{answers: []int{403}}
	web := httptest.NewServer(server)
	defer web.Close()
	w := newRunner(t)
	code, _, errs := w.Run("demo", "--url", web.URL, "--api-key", "k")
	if code != cli.ExitFailed || !strings.Contains(errs, "event: 403 Forbidden") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}

func TestDemoMakesItsKeyAndDeletesIt(t *testing.T) {
	w := newRunner(t)
	w.MustRun("account", "create", "demo", "--domain", "demo.local", "--id", "demo")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	server := &ingest{onPost: func(n int) {
		if n == 2 {
			stop() // as Ctrl-C does
		}
	}}

	web := httptest.NewServer(server)
	defer web.Close()

	code, _, errs := w.RunContext(ctx, "demo", "--url", web.URL, "--account", "demo.local", "--rate", "100")
	if code != cli.ExitOK || strings.Contains(errs, "failed") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
	if len(server.keys) != 2 || server.keys[0] == "" || strings.Contains(errs, server.keys[0]) {
		t.Errorf("posted with %q", server.keys)
	}

	var keys []any
	w.MustJSON(&keys, "apikey", "list", "--json")
	if len(keys) != 0 {
		t.Errorf("left are %+v", keys)
	}
}

func TestDemoDoesNotWaitForEver(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	web.Close()
	w := newRunner(t)
	code, _, errs := w.Run("demo", "--url", web.URL, "--wait", "300ms")
	if code != cli.ExitFailed || !strings.Contains(errs, "waiting for "+web.URL) ||
		!strings.Contains(errs, "not ready after 300ms") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	away := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		stop()
		rw.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer away.Close()

	if code, _, errs := w.RunContext(ctx, "demo", "--url", away.URL); code != cli.ExitOK {
		t.Errorf("stopped while waiting: exit code %d, stderr %q", code, errs)
	}
}

func TestDemoWithoutItsAccount(t *testing.T) {
	web := httptest.NewServer(&ingest{})
	defer web.Close()
	w := newRunner(t)
	code, _, errs := w.Run("demo", "--url", web.URL)
	if code != cli.ExitFailed || !strings.Contains(errs, "creating an API key for account demo: ") {
		t.Errorf("exit code %d, stderr %s", code, strconv.Quote(errs))
	}
}
