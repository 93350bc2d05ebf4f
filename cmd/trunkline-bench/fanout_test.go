package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/settings"
)

// relayServer is a small events channel: it sends each posted event to the sockets that logged in
// to the event's account.
type relayServer struct {
	*httptest.Server
	spoil func(n int, message string) []string // messages to send in place of the n-th event; nil: the event itself

	mu      sync.Mutex
	sockets map[string][]*websocket.Conn // by account
	logins  int
	posted  int
	events  int            // posted, without probes
	keys    map[string]int // posts by API key
	closed  chan struct{}
}

func newRelay(t *testing.T) *relayServer {
	c := &relayServer{sockets: map[string][]*websocket.Conn{}, keys: map[string]int{}, closed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+channelPath+"/login", c.login)
	mux.HandleFunc("GET "+channelPath+"/ws", c.socket)
	mux.HandleFunc("POST /api/v2/ingest/generic", c.ingest)
	c.Server = httptest.NewServer(mux)

	t.Cleanup(func() {
		close(c.closed)
		c.Close()
	})

	return c
}

func (c *relayServer) login(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Username, Password, Domain string
		AccountIDs                 []string `json:"account_ids"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Password == "" || body.Domain == "" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}

	c.mu.Lock()
	c.logins++
	c.mu.Unlock()

	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": strings.Join(body.AccountIDs, "~"), "expires_in": 60})
}

func (c *relayServer) socket(w http.ResponseWriter, r *http.Request) {
	accounts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "~")
	socket, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer socket.Close()

	c.mu.Lock()
	for _, account := range accounts {
		c.sockets[account] = append(c.sockets[account], socket)
	}
	c.mu.Unlock()

	<-c.closed
}

func (c *relayServer) ingest(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("X-API-Key") == "" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}

	c.mu.Lock()
	c.keys[r.Header.Get("X-API-Key")]++
	c.mu.Unlock()

	for line := range strings.Lines(string(body)) {
		if err := c.relay(line); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}

	w.WriteHeader(http.StatusAccepted)
}

// relay sends an event to the subscribers of its account.
func (c *relayServer) relay(line string) error {
	var e struct {
		AccountID string `json:"account_id"`
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.posted++
	message := fmt.Sprintf(`{"id":"cc_evt_%019d","data":%s}`, c.posted, strings.TrimSpace(line))
	messages := []string{message}

	if c.spoil != nil && !strings.Contains(line, ".000000000000.") { // but leave probes unchanged
		c.events++
		messages = c.spoil(c.events, message)
	}

	for _, socket := range c.sockets[e.AccountID] {
		for _, m := range messages {
			_ = socket.WriteMessage(websocket.TextMessage, []byte(m)) // a disconnected client is not an error
		}
	}

	return nil
}

// benchmarkFanout runs fanout on the data directory.
func benchmarkFanout(w *clitest.Runner, ctx context.Context,
	args ...string) (report fanoutReport, code int, errs string) {
	w.T.Helper()
	code, out, errs := w.RunContext(ctx, append([]string{"fanout", "--json", "--through", "http"}, args...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil && out != "" {
		w.T.Fatalf("stdout %q, stderr %s", out, errs)
	}
	return report, code, errs
}

var quickArgs = []string{"--subscribers", "30", "--accounts", "3", "--rate", "300", "--duration", "500ms", "--warmup",
	"100ms"}

func TestBenchReportsWhatItSaw(t *testing.T) {
	t.Parallel()
	c, w := newRelay(t), newRunner(t)
	r, code, errs := benchmarkFanout(w, t.Context(),
		append(slices.Clone(quickArgs), "--url", c.URL, "--server-pid", fmt.Sprint(os.Getpid()), "--idle", "50ms")...)
	if code != cli.ExitOK || r.Lost != 0 || r.Duplicated != 0 || r.Disordered != 0 || r.Connected != 30 ||
		r.Interrupted {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}
	if r.Published == 0 || r.Deliveries < 2*r.Published || r.Deliveries > 50*r.Published || r.MessageBytes < 1024 ||
		r.LatencyMS.P99 <= 0 {
		t.Errorf("%+v", r)
	}
	if r.Usage == nil || r.Usage.RSSBytesBefore == 0 || c.logins != 3 {
		t.Errorf("usage %+v, %d logins", r.Usage, c.logins)
	}

	var accounts []any
	w.MustJSON(&accounts, "account", "list", "--json")
	if len(accounts) != 0 {
		t.Errorf("left are %+v", accounts)
	}
}

func TestBenchSeesAllAccountsWithOneLogin(t *testing.T) {
	t.Parallel()
	c := newRelay(t)
	r, code, errs := benchmarkFanout(newRunner(t), t.Context(),
		append(slices.Clone(quickArgs), "--url", c.URL, "--every-account")...)
	if code != cli.ExitOK || c.logins != 1 || r.Deliveries < 12*r.Published {
		t.Errorf("exits with %d, %d logins: %+v\n%s", code, c.logins, r, errs)
	}
}

func TestBenchPublishesThroughTheServersKafka(t *testing.T) {
	t.Parallel()
	c, w := newRelay(t), newRunner(t)
	s := settings.Default()
	s.DataDir = w.Dir
	cluster, closeKafka, err := backend.OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	t.Cleanup(func() {
		stop()
		reading.Wait()
		if err := closeKafka(); err != nil {
			t.Error(err)
		}
	})

	const partitions = 2
	if err := cluster.EnsureTopics(ctx, topics.All(partitions)); err != nil {
		t.Fatal(err)
	}

	for partition := range partitions {
		reading.Go(func() {
			reader := cluster.NewReader(event.TopicRaw, partition, 0)
			defer reader.Close()

			for {
				records, err := reader.Read(ctx)
				if err != nil {
					return // wait until the test ends; later posts would be lost
				}

				for i := range records {
					if string(records[i].Header(event.HeaderFormat)) != "generic" ||
						c.relay(string(records[i].Value)) != nil {
						t.Errorf("read %+v", records[i])
					}
				}
			}
		})
	}

	r, code, errs := benchmarkFanout(w, t.Context(),
		append(slices.Clone(quickArgs), "--url", c.URL, "--through", "auto")...)
	if code != cli.ExitOK || r.Deliveries < 2*r.Published || r.Published == 0 || strings.Contains(errs, "HTTP") {
		t.Errorf("exits with %d: %+v\n%s", code, r, errs)
	}
}

func TestBenchWithoutKafkaPublishesOverHTTP(t *testing.T) {
	t.Parallel()
	c, w := newRelay(t), newRunner(t)
	r, code, errs := benchmarkFanout(w, t.Context(),
		append(slices.Clone(quickArgs), "--url", c.URL, "--through", "auto")...)
	if code != cli.ExitOK || r.Published == 0 || !strings.Contains(errs, "publishing over HTTP") {
		t.Errorf("exits with %d: %+v\n%s", code, r, errs)
	}

	_, code, errs = benchmarkFanout(w, t.Context(),
		append(slices.Clone(quickArgs), "--url", c.URL, "--through", "kafka")...)
	if code != cli.ExitFailed || strings.Contains(errs, "publishing over HTTP") {
		t.Errorf("--through kafka: exit code %d, stderr %s", code, errs)
	}
}

func TestBenchWithAnAccountThatIsThere(t *testing.T) {
	t.Parallel()
	c, w := newRelay(t), newRunner(t)
	w.Environ = []string{cli.EnvPassword + "=secret"}
	args := []string{"--url", c.URL, "--username", "u", "--domain", "d", "--account", "a,b", "--subscribers", "4",
		"--rate", "100", "--duration", "300ms"}
	if _, code, errs := benchmarkFanout(w, t.Context(), args...); code != cli.ExitUsage ||
		!strings.Contains(errs, "needs an API key in "+cli.EnvAPIKey) {
		t.Errorf("without a key: exit code %d, stderr %s", code, errs)
	}

	w.Environ = append(w.Environ, cli.EnvAPIKey+"=k")
	r, code, errs := benchmarkFanout(w, t.Context(), args...)
	if code != cli.ExitOK || r.Accounts != 2 || r.Published == 0 || r.Deliveries == 0 || c.keys["k"] == 0 ||
		len(c.keys) != 1 {
		t.Errorf("exits with %d, keys %v: %+v\n%s", code, c.keys, r, errs)
	}
}

func TestBenchFailsWhenEventsAreSpoiled(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(int, string) []string{
		"lost": func(n int, m string) []string {
			if n == 20 {
				return nil
			}
			return []string{m}
		},
		"duplicated": func(n int, m string) []string {
			if n == 20 {
				return []string{m, m}
			}
			return []string{m}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()

			c := newRelay(t)
			c.spoil = func(n int, m string) []string {
				if n == 40 {
					stop()
				}
				return spoil(n, m)
			}

			r, code, errs := benchmarkFanout(newRunner(t), ctx,
				append(slices.Clone(quickArgs), "--url", c.URL, "--duration", "1h")...)
			found := map[string]uint64{"lost": uint64(r.Lost), "duplicated": r.Duplicated}
			if code != cli.ExitFailed || found[name] != 10 || r.Lost+int64(r.Duplicated+r.Disordered) != 10 ||
				!strings.Contains(errs, "events were lost, repeated or out of order") {
				t.Errorf("exits with %d: %+v\n%s", code, r, errs)
			}
		})
	}
}

func TestBenchEndsWithTheReportSoFar(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	c := newRelay(t)
	c.spoil = func(n int, m string) []string {
		if n == 200 {
			stop() // as Ctrl-C does
		}
		return []string{m}
	}

	r, code, errs := benchmarkFanout(newRunner(t), ctx,
		append(slices.Clone(quickArgs), "--url", c.URL, "--duration", "1h")...)
	if code != cli.ExitOK || !r.Interrupted || r.Deliveries < 500 || r.Lost != 0 {
		t.Errorf("exits with %d: %+v\n%s", code, r, errs)
	}
}

func TestBenchClimbsUntilItIsTooSlow(t *testing.T) {
	t.Parallel()

	c := newRelay(t)
	dueTime := regexp.MustCompile(`\.(\d{19})"`)
	c.spoil = func(n int, m string) []string {
		if n > 300 { // overload: the event arrives an hour after its due time
			m = dueTime.ReplaceAllString(m, fmt.Sprintf(`.%019d"`, time.Now().Add(-time.Hour).UnixNano()))
		}
		return []string{m}
	}

	const limit = 10 * time.Minute
	args := []string{"--url", c.URL, "--subscribers", "5", "--rate", "300", "--duration", "500ms", "--warmup", "0",
		"--climb", limit.String()}
	r, code, errs := benchmarkFanout(newRunner(t), t.Context(), args...)
	steps := r.Climb
	if code != cli.ExitOK || len(steps) < 3 {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}

	last, repeated := steps[len(steps)-1], steps[len(steps)-2]
	if last.Rate != repeated.Rate || last.LatencyMS.P99 <= ms(limit) || repeated.LatencyMS.P99 <= ms(limit) {
		t.Errorf("ended with %+v", steps)
	}
	if r.Rate >= last.Rate || r.LatencyMS.P99 > ms(limit) || r.Deliveries == 0 {
		t.Errorf("reports %+v", r)
	}
}

func TestBenchThatClimbsFromTooHigh(t *testing.T) {
	t.Parallel()
	args := []string{"--url", newRelay(t).URL, "--subscribers", "5", "--duration", "200ms", "--warmup", "0", "--climb",
		"1ns"}
	if _, code, errs := benchmarkFanout(newRunner(t), t.Context(), args...); code != cli.ExitFailed ||
		!strings.Contains(errs, "start with a lower --rate") {
		t.Errorf("exit code %d, stderr %s", code, errs)
	}
}

// envBaseline makes TestBaselineProcess the process of a baseline server.
const envBaseline = "TRUNKLINE_TEST_FLOOR"

func TestBaselineProcess(t *testing.T) {
	if os.Getenv(envBaseline) == "" {
		t.Skip("only as a process of TestBenchOfBaselines")
	}
	args := os.Args[slices.Index(os.Args, "--")+1:]
	p := &cli.Program{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(p.Run(t.Context(), p.Root("trunkline-bench", "", commands(p)...), args))
}

func TestBenchOfBaselines(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{baselinePlain, baselineCoalesced} {
		for _, url := range []string{"http://x", "https://x"} {
			var out bytes.Buffer
			b := &fanoutBench{bench: bench{p: &cli.Program{Out: &out, Err: t.Output()}, url: url, asJSON: true,
				accounts: 2, rate: 400, size: 1024, duration: 300 * time.Millisecond, through: throughAuto},
				baseline: variant, subscribers: 20,
				stallShare: "0%", resume: "never",
				selfCommand: func(args ...string) (*exec.Cmd, error) {
					command := exec.Command(os.Args[0],
						append([]string{"-test.run=^TestBaselineProcess$", "--"}, args...)...)
					command.Env = append(os.Environ(), envBaseline+"=1")
					return command, nil
				},
			}
			if err := errors.Join(b.validate(), b.run(t.Context())); err != nil {
				t.Fatalf("%s, %s: %v", variant, url, err)
			}

			var r fanoutReport
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Server != "floor, "+variant || (r.Transport == "wss") != strings.HasPrefix(url, "https") ||
				r.Deliveries == 0 || r.Usage == nil || r.Lost != 0 {
				t.Errorf("%s, %s: %+v", variant, url, r)
			}
		}
	}
}

func TestBenchReportForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := fanoutReport{Server: "trunkline", Closed: map[int]int{4008: 2, 1012: 1}, Refused: map[int]uint64{503: 4},
		Stalled: 3,
		Resumed: 1, Climb: []fanoutStep{{Rate: 7}},
		Usage: &serverUsage{GoBytesPerConnection: 2048, IdleCPUMicrosecondsPerSec: 1.5}}
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"closed 1 with 1012, 2 with 4008; refused 4 with 503", "climb", "2.0 KB of Go heap",
		"1.5 µs CPU per idle second", "stalled"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestBenchSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newRunner(t)
	for want, args := range map[string][]string{
		"--stall is a share":                 {"--stall", "5"},
		"at least --accounts":                {"--subscribers", "2", "--accounts", "3"},
		"--rate must be above 0":             {"--rate", "0"},
		"--size must be at least":            {"--size", "10"},
		"--size must be at most":             {"--size", "2000000"},
		"--resume is never, id or cursor":    {"--resume", "x"},
		"--floor is plain or coalesced":      {"--floor", "x"},
		"a floor has subscribers of one":     {"--floor", "plain", "--every-account"},
		"--username needs --domain":          {"--username", "u"},
		"--api-key needs --username":         {"--api-key", "k"},
		"needs its password in TRUNKLINE_PA": {"--username", "u", "--domain", "d", "--account", "a"},
		"--metrics is such as":               {"--metrics", "9464"},
		"--url must be":                      {"--url", "ws://x"},
		"--duration must be":                 {"--duration", "0"},
	} {
		w.MustFail(cli.ExitUsage, want, append([]string{"fanout"}, args...)...)
	}

	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()

	code, _, errs := w.Run("fanout", "--url", web.URL)
	if code != cli.ExitFailed || !strings.Contains(errs, "logging in as bench") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}
