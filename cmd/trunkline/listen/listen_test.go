package listen

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/event"
	"trunkline/settings"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p)}
	})
}

// fakeChannel returns an events channel that sends its messages and then closes with "access
// revoked".
func fakeChannel(messages ...string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ws/v1/cc_events/login", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"access_token":"t","expires_in":86400}`))
	})

	mux.HandleFunc("GET /ws/v1/cc_events/stream", func(w http.ResponseWriter, r *http.Request) {
		for _, message := range messages {
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(message, "\n", "\ndata: "))
		}
		fmt.Fprint(w, ": 4003 access revoked\n")
	})

	return mux
}

var messages = []string{
	`{"id":"cc_evt_1","type":"svc_cc_queue_on_call_event","account_id":"demo","timestamp":1795000000,` +
		`"data":{"CDR":{"Event":"CHANNEL_ANSWER",` + "\n" +
		`"Call-ID":"another"}},"metadata":{"queue_id":"support","facts":{"name":"queue.call_answered",` +
		`"agent_id":"2001","agent_name":"Ada","queue_id":"support","call_id":"c1\u001b[2J","caller":"+12025550104","state":"talking","previous_state":"ringing","wait_ms":65040}}}`,
	`{"id":"cc_evt_1","type":"again"}`,
	`{"id":"cc_evt_2","type":"AGENT_CUSTOM_EVENT","account_id":"demo","timestamp":1795000001,"data":[1],"metadata":{"facts":{"name":"other","reason":"test"}}}`,
	`{"id":"cc_evt_3","type":"AGENT_LOGIN","account_id":"demo","timestamp":1795000001,"data":{"agent_id":"7"},"metadata":{"queue_id":"sales"}}`,
	`{"not":"a message","data":` + "\n" + `[],"id":"cc_evt_4","timestamp":"now"}`,
}

func runListen(w *clitest.Runner, url string, more ...string) (code int, out, errs string) {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), time.Minute)
	defer cancel()
	w.Environ = []string{"TRUNKLINE_PASSWORD=pw"}
	args := append([]string{"listen", "--url", url, "--username", "alice", "--domain", "demo.local", "--path-set",
		"ws"}, more...)
	return w.RunContext(ctx, args...)
}

func TestListenPrintsALineForEachEvent(t *testing.T) {
	web := httptest.NewServer(fakeChannel(messages...))
	defer web.Close()

	w := newRunner(t)

	code, out, errs := runListen(w, web.URL)
	at := time.Unix(1_795_000_000, 0).Format(time.TimeOnly)
	later := time.Unix(1_795_000_001, 0).Format(time.TimeOnly)
	want := at + "  queue.call_answered  demo  agent=2001  agent_name=Ada  queue=support  call=c1 [2J  caller=+12025550104  state=talking  before=ringing  wait=1m5s\n" +
		later + "  AGENT_CUSTOM_EVENT  demo  reason=test\n" +
		later + "  AGENT_LOGIN  demo  queue=sales\n" + // a message without facts
		strings.ReplaceAll(messages[4], "\n", "") + "\n"
	if code != cli.ExitFailed || out != want {
		t.Errorf("exits with %d, prints %q, want %q", code, out, want)
	}
	if !strings.Contains(errs, "trunkline: connected, listening\n") || !strings.Contains(errs, "4003") {
		t.Errorf("stderr %q", errs)
	}

	_, out, _ = runListen(w, web.URL, "--json")
	want = strings.ReplaceAll(messages[0], "\n", "") + "\n" + messages[2] + "\n" + messages[3] + "\n" +
		strings.ReplaceAll(messages[4], "\n", "") + "\n"
	if out != want {
		t.Errorf("prints %q, want %q", out, want)
	}
}

func TestListenTrustsTheServerOfTheDataDirectory(t *testing.T) {
	web := httptest.NewTLSServer(fakeChannel(messages[2]))
	defer web.Close()

	w := newRunner(t)
	if code, out, errs := runListen(w, web.URL); code != cli.ExitFailed || out != "" ||
		!strings.Contains(errs, "certificate") {
		t.Errorf("a stranger: exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	if _, out, errs := runListen(w, web.URL, "--insecure"); out == "" {
		t.Errorf("--insecure: says %q", errs)
	}

	s := settings.Settings{DataDir: w.Dir}
	certFile, _ := s.SelfSigned()
	if err := os.MkdirAll(filepath.Dir(certFile), 0o700); err != nil {
		t.Fatal(err)
	}

	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(certFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := runListen(w, web.URL); out == "" {
		t.Errorf("with its certificate: says %q", errs)
	}

	code, _, errs := runListen(w, web.URL, "--ca", "/nowhere")
	if code != cli.ExitUsage || !strings.Contains(errs, "/nowhere") {
		t.Errorf("--ca /nowhere: exit code %d, stderr %q", code, errs)
	}
}

func TestListenRefusesWhatCannotWork(t *testing.T) {
	w := newRunner(t)
	w.Environ = []string{"TRUNKLINE_PASSWORD=pw"}
	w.MustFail(cli.ExitUsage, "the URL must be https://host:port", "listen", "--username", "u", "--domain", "d",
		"--url", "wss://x")
	w.MustFail(cli.ExitUsage, `the path set must be api or ws, got "both"`, "listen", "--username", "u", "--domain",
		"d", "--path-set", "both")
}

func FuzzReadable(f *testing.F) {
	for _, message := range messages {
		f.Add([]byte(message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if line := textLine(message); strings.ContainsAny(string(line), "\r\n") && string(line) != string(message) {
			t.Errorf("%q became %q", message, line)
		}
	})
}

// A time is converted to an event id. If the log begins later, listen starts at its beginning and
// skips older events.
func TestListenSinceATime(t *testing.T) {
	const at = 1_795_000_000
	old, fresh := event.FirstID(time.Unix(at-10, 0), 3), event.FirstID(time.Unix(at+10, 0), 3)

	all := fakeChannel(
		fmt.Sprintf(`{"id":"%s","type":"OLD","account_id":"demo","timestamp":%d}`, old, at-10),
		fmt.Sprintf(`{"id":"%s","type":"FRESH","account_id":"demo","timestamp":%d}`, fresh, at+10))
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			since := r.URL.Query().Get("since") + r.Header.Get("Last-Event-ID")
			asked = append(asked, since)
			if since != sinceEarliest {
				w.WriteHeader(http.StatusGone)
				return
			}
		}

		all.ServeHTTP(w, r)
	}))
	defer web.Close()

	_, out, errs := runListen(newRunner(t), web.URL, "--since", fmt.Sprint(at))
	if !strings.Contains(out, "FRESH") || strings.Contains(out, "OLD") ||
		!slices.Equal(asked, []string{event.FirstID(time.Unix(at, 0), 0).String(), sinceEarliest}) {
		t.Errorf("requests %q, stdout %q, stderr %q", asked, out, errs)
	}
	if code, _, errs := runListen(newRunner(t), web.URL, "--since", "yesterday"); code != cli.ExitUsage ||
		!strings.Contains(errs, "--since is a duration") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}
