package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
	"trunkline/settings"
)

// newEnv returns an Env with trunkline-bench and the commands that create its accounts.
func newEnv(t *testing.T) *clitest.Env {
	return clitest.New(t, "trunkline-bench", func(p *cli.Program) []*cobra.Command {
		return append(commands(p), directory.AccountCommand(p), directory.UserCommand(p), directory.APIKeyCommand(p))
	})
}

// benchmarkAPI runs api on the data directory.
func benchmarkAPI(w *clitest.Env, ctx context.Context, args ...string) (report apiReport, code int, errs string) {
	w.T.Helper()
	code, out, errs := w.RunContext(ctx, append([]string{"api", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil && out != "" {
		w.T.Fatalf("stdout %q, stderr %s", out, errs)
	}
	return report, code, errs
}

func TestBenchAPIOnTheWholeProgram(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.Serve(func(s *settings.Settings) {
		s.Origination.Driver, s.Origination.UserCalls = "simulator", 0
	})
	statuses := map[string]int{opLogin: 200, opToken: 200, opEncryptionGet: 200, opEncryptionPut: 200, opCall: 201,
		opLookup: 200, opReport: 200}
	var r apiReport
	var code int
	var errs string
	for duration, complete := 2*time.Second, false; !complete; duration *= 2 { // a slow machine needs longer
		r, code, errs = benchmarkAPI(w, t.Context(), "--mix", strings.Join(allOperations, ","), "--rate", "20",
			"--accounts", "3", "--records", "30", "--warmup", "100ms", "--duration", duration.String(), "--server-pid",
			strconv.Itoa(os.Getpid()))
		if code != cli.ExitOK || r.Failed != 0 || r.Loop != "open" || r.Usage == nil || r.Interrupted {
			t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
		}
		complete = true
		for name, status := range statuses {
			o := r.Operations[name]
			complete = complete && o.Requests > 0
			if o.Statuses[status] != o.Requests || o.Requests > 0 && (o.GoodPerSecond <= 0 || o.LatencyMS.P50 <= 0) {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if !complete && duration > time.Minute {
			t.Fatalf("operations without requests: %+v", r.Operations)
		}
	}
	if !strings.Contains(errs, "requests/s") || !strings.Contains(errs, "are deleted; these remain: ") {
		t.Errorf("stderr %s", errs)
	}

	w.MustRun("account", "create", "Own", "--id", "own", "--domain", "own.example")
	w.Stdin = "correct horse battery"
	w.MustRun("user", "create", "boss", "--account", "own", "--role", "admin", "--password-stdin")
	w.Environ = append(w.Environ, cli.EnvPassword+"=correct horse battery")
	own := []string{"--username", "boss", "--domain", "own.example", "--account", "own", "--rate", "0", "--connections",
		"3", "--warmup", "0", "--duration", "1s"}
	r, code, errs = benchmarkAPI(w, t.Context(), append(own, "--mix", "encryption-get,token")...)
	if code != cli.ExitOK || r.Loop != "closed" || r.Requests == 0 || r.Failed != 0 ||
		r.Operations[opToken].Requests == 0 {
		t.Errorf("with an account of the server's: exits with %d: %+v\n%s", code, r, errs)
	}
	_, code, errs = benchmarkAPI(w, t.Context(), append(own, "--mix", "lookup")...)
	if code != cli.ExitFailed || !strings.Contains(errs, "--mix: lookup has nothing to find") {
		t.Errorf("without call records: exits with %d: %s", code, errs)
	}
	var accounts []struct{ ID string }
	w.MustJSON(&accounts, "account", "list", "--json")
	for _, a := range accounts {
		if strings.HasPrefix(a.ID, "bench-") {
			t.Errorf("left is %+v", a)
		}
	}
}

func TestBenchAPIRefusesWhatIsNotPrepared(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	w.Serve(func(s *settings.Settings) { s.Roles = []string{"api"} })
	for mix, want := range map[string]string{
		"token":  "is not ready for token: 404",
		"call":   "is not ready for call: 404",
		"lookup": "posting call records to look up: 404",
	} {
		if _, code, errs := benchmarkAPI(w, t.Context(), "--mix", mix, "--users", "1", "--accounts",
			"1"); code != cli.ExitFailed || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, stderr %s", mix, code, errs)
		}
	}
}

// portal is a login server that issues the configured tokens.
type portal struct {
	*httptest.Server
	asked atomic.Uint64
}

func newPortal(t *testing.T, expiresIn int, token http.HandlerFunc) *portal {
	p := &portal{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /openapi.yaml", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST "+portalLogin, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(tokenResponse{AccessToken: "t", ExpiresIn: int64(expiresIn)})
	})
	mux.HandleFunc("GET "+channelPath+"/stats", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		token(w, r)
	})
	mux.HandleFunc("POST /ucp/v2/c2c/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"origination_call_id":"fs-1"}`))
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func statsAnswer(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte(`{"total_connections":0}`))
}

func TestBenchAPINamesWhatFails(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var p *portal
	p = newPortal(t, 3600, func(w http.ResponseWriter, r *http.Request) {
		switch n := p.asked.Load(); {
		case n >= 100:
			stop()
		case n > 1 && n%10 == 3:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"success":false,"message":"The database is away"}`))
		case n%10 == 5:
			_, _ = w.Write([]byte(`{}`))
		case n%10 == 7:
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"total_`))
			_ = http.NewResponseController(w).Flush() // otherwise net/http retries the request
			panic(http.ErrAbortHandler)
		default:
			statsAnswer(w, r)
		}
	})
	r, code, errs := benchmarkAPI(newEnv(t), ctx, "--url", p.URL, "--mix", "token", "--rate", "200", "--connections",
		"1", "--warmup", "0", "--duration", "1h")
	o := r.Operations[opToken]
	if code != cli.ExitFailed || !strings.Contains(errs, errRequestsFailed.Error()) {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}
	if o.Errors["status 503"] < 5 || o.Errors["wrong answer"] < 5 || o.Errors["connection closed"] < 5 ||
		o.Failed != o.Errors["status 503"]+o.Errors["wrong answer"]+o.Errors["connection closed"] ||
		o.Statuses[503] != o.Errors["status 503"] {
		t.Errorf("%+v", o)
	}
	if o.Examples["status 503"] != "503 The database is away" ||
		!strings.Contains(o.Examples["wrong answer"], "total_connections") {
		t.Errorf("%+v", o.Examples)
	}
}

// When a server stalls, the latency of every request due meanwhile includes the stall.
func TestBenchAPIMeasuresFromWhenRequestsWereDue(t *testing.T) {
	t.Parallel()
	var p *portal
	p = newPortal(t, 3600, func(w http.ResponseWriter, r *http.Request) {
		if p.asked.Load() == 5 {
			time.Sleep(500 * time.Millisecond)
		}
		statsAnswer(w, r)
	})
	r, code, errs := benchmarkAPI(newEnv(t), t.Context(), "--url", p.URL, "--mix", "token", "--rate", "200",
		"--connections", "1", "--warmup", "0", "--duration", "1500ms")
	// A stall of a third of the run affects 100 of 300 requests, and a single one in a closed
	// loop.
	if code != cli.ExitOK || r.LatencyMS.P90 < 150 || r.LatencyMS.Max < 490 {
		t.Errorf("exits with %d: %+v\n%s", code, r, errs)
	}
}

func TestBenchAPIEndsWithTheReportSoFar(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var p *portal
	p = newPortal(t, 7200, func(w http.ResponseWriter, r *http.Request) {
		if p.asked.Load() == 40 {
			stop() // as Ctrl-C does
		}
		statsAnswer(w, r)
	})
	r, code, errs := benchmarkAPI(newEnv(t), ctx, "--url", p.URL, "--mix", "token", "--rate", "100", "--warmup", "0",
		"--duration", "1h")
	if code != cli.ExitOK || !r.Interrupted || r.Requests < 30 {
		t.Errorf("exits with %d: %+v\n%s", code, r, errs)
	}
}

func TestBenchAPIClimbs(t *testing.T) {
	t.Parallel()
	var p *portal
	p = newPortal(t, 3600, func(w http.ResponseWriter, r *http.Request) {
		if p.asked.Load() > 60 {
			w.WriteHeader(http.StatusServiceUnavailable) // overload
			return
		}
		statsAnswer(w, r)
	})
	r, code, errs := benchmarkAPI(newEnv(t), t.Context(), "--url", p.URL, "--mix", "token", "--rate", "50",
		"--warmup", "0", "--duration", "400ms", "--climb", "1m")
	if code != cli.ExitOK || len(r.Climb) < 3 {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}
	last, repeated := r.Climb[len(r.Climb)-1], r.Climb[len(r.Climb)-2]
	if last.Rate != repeated.Rate || last.Failed == 0 || repeated.Failed == 0 || r.Rate >= last.Rate || r.Failed != 0 ||
		r.Requests == 0 {
		t.Errorf("reports %+v", r)
	}
}

func TestBenchAPIReportForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := apiReport{Loop: "open", Rate: 7, Behind: 3, Operations: map[string]operationReport{opCall: {
		Statuses: map[int]uint64{201: 5, 429: 2}, Errors: map[string]uint64{"status 429": 2},
		Examples: map[string]string{"status 429": "429 Too many"},
	}}, Climb: []apiStep{{Rate: 9}}, Usage: &windowUsage{Cores: .5}, Interrupted: true}
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"7 requests a second", "3 were due", "accepted a second", "5 with 201, 2 with 429",
		"2, such as: 429 Too many", "9 requests/s", "0.50 cores", "so far"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestBenchAPISaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	for want, args := range map[string][]string{
		`--mix has an unknown operation "x"`: {"--mix", "x"},
		"--mix: the share of call":           {"--mix", "call=0"},
		"--mix names call twice":             {"--mix", "call,call"},
		"--mix: call is only for accounts":   {"--mix", "call", "--username", "u", "--domain", "d", "--account", "a"},
		"--connections must be from 1":       {"--connections", "0"},
		"--users must be from 0":             {"--users", "-1"},
		"--records must be from 1":           {"--records", "0"},
		"--accounts must be from 1":          {"--accounts", "0"},
		"--rate must be at least 0":          {"--rate", "-1"},
		"--duration must be above 0":         {"--duration", "0"},
		"--username needs --domain":          {"--username", "u"},
	} {
		w.MustFail(cli.ExitUsage, want, append([]string{"api"}, args...)...)
	}
	w.MustFail(cli.ExitFailed, "no Trunkline answers at http://127.0.0.1:1", "api", "--url", "http://127.0.0.1:1")
	for want, p := range map[string]*portal{
		"the call is not on the simulator": newPortal(t, 3600, statsAnswer),
		"--duration must be shorter":       newPortal(t, 10, statsAnswer),
	} {
		code, out, errs := w.Run("api", "--url", p.URL, "--mix", "call", "--users", "1")
		if code == cli.ExitOK || out != "" || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, stdout %q, stderr %s; want %q", code, out, errs, want)
		}
	}
}
