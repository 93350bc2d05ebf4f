package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/ingest"
	"trunkline/internal/fault"
)

func TestPanic(t *testing.T) {
	e := newEnv(t)
	w := e.through(httptest.NewRequest("GET", "/panics", nil), func(echo.Context) error { panic("a secret") })
	if w.Code != 500 || w.Body.String() != `{"success":false,"message":"Internal error"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if log := e.log.String(); !strings.Contains(log, "middleware_test.go") || !strings.Contains(log, "status=500") {
		t.Errorf("no stack or no line in the log: %s", log)
	}

	want := `
# HELP trunkline_recovered_panics_total Panics recovered, by place; each ended one call, session or message.
# TYPE trunkline_recovered_panics_total counter
trunkline_recovered_panics_total{where="api_request"} 1
`
	must(t, testutil.GatherAndCompare(e.metricRegistry, strings.NewReader(want), "trunkline_recovered_panics_total"))
}

func TestPanicInTheMiddleOfAnAnswer(t *testing.T) {
	e := newEnv(t)
	e.api.echo.GET("/breaks", func(c echo.Context) error {
		_, err := io.WriteString(c.Response(), strings.Repeat("x", 10_000))
		must(t, err)
		panic("now")
	})

	server := httptest.NewServer(e.api)
	defer server.Close()

	r, err := http.Get(server.URL + "/breaks")
	must(t, err)
	defer func() { _ = r.Body.Close() }()

	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("a broken answer looks whole")
	}
}

func TestTimeout(t *testing.T) {
	e := newEnv(t)
	synctest.Test(t, func(t *testing.T) {
		r := httptest.NewRequest("GET", "/slow", nil)
		began := time.Now()
		w := e.through(r, withTimeout(func(c echo.Context) error {
			<-c.Request().Context().Done()
			return fmt.Errorf("reading x: %w", c.Request().Context().Err())
		}))
		if w.Code != 503 || w.Header().Get("Retry-After") != "1" || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %d %s", time.Since(began), w.Code, w.Body)
		}
	})
}

func TestClientThatLeftIsNoFaultOfOurs(t *testing.T) {
	e := newEnv(t)

	ctx, cancel := context.WithCancel(t.Context())
	r := httptest.NewRequest("GET", "/left", nil).WithContext(ctx)
	w := e.through(r, func(echo.Context) error {
		cancel()
		return fault.Unavailable(ctx.Err(), time.Second, "the database is away")
	})
	if w.Code != 499 || strings.Contains(e.log.String(), "request failed") {
		t.Errorf("%d\n%s", w.Code, e.log)
	}
}

func TestWhatIsLogged(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		err        error
	}{
		{"ours", "level=ERROR", errors.New("boom")},
		{"away", "level=WARN", fault.Unavailable(errors.New("refused"), 0, "away")},
		{"overload", "", fault.Unavailable(nil, 0, "full")},
		{"the caller's", "", fault.Invalid("bad")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEnv(t)
			e.through(httptest.NewRequest("GET", "/fails", nil), func(echo.Context) error { return tc.err })
			log := e.log.String()
			if got := strings.Contains(log, "request failed"); got != (tc.want != "") ||
				!strings.Contains(log, tc.want) {
				t.Errorf("logged %s", log)
			}
		})
	}
}

func TestIngestAndSocketsHaveTheirOwnTime(t *testing.T) {
	deadlineCheck := ingestFunc(func(ctx context.Context) {
		if _, limited := ctx.Deadline(); limited {
			t.Error("ingest is under requestTimeout")
		}
	})

	e := newEnv(t, func(_ *Config, d *Deps) { d.Ingest = deadlineCheck })
	e.ask(202, "POST", "/api/v2/ingest/generic", e.keyHeader(""), `{}`, nil)
	e.ask(200, "GET", channelPrefix+"/stream", nil, "", nil)

	if _, limited := e.channel.requests[0].HTTP.Context().Deadline(); limited {
		t.Error("the channel is under requestTimeout")
	}
}

type ingestFunc func(context.Context)

func (f ingestFunc) Accept(ctx context.Context, _ ingest.Request) (ingest.Result, error) {
	f(ctx)
	return ingest.Result{Accepted: 1}, nil
}

func TestRequestID(t *testing.T) {
	e := newEnv(t)
	for given, kept := range map[string]bool{
		"abc-1.2_3:4/5+6=":            true,
		strings.Repeat("x", 128):      true,
		strings.Repeat("x", 129):      false,
		"":                            false,
		"a b":                         false,
		"a\r\nX-Injected: 1":          false,
		"é":                           false,
		`"><script>alert(1)</script>`: false,
	} {
		w := e.ask(200, "GET", channelPrefix+"/health", header{"X-Request-ID": given}, "", nil)
		got := w.Header().Get("X-Request-ID")
		if got == "" || (got == given) != kept {
			t.Errorf("%q became %q", given, got)
		}
	}

	r := httptest.NewRequest("GET", "/nope", nil)
	w := httptest.NewRecorder()
	e.api.ServeHTTP(w, r)

	if w.Header().Get("X-Request-ID") == "" {
		t.Error("an error without X-Request-ID")
	}
}

func TestSecurityHeaders(t *testing.T) {
	e := newEnv(t)
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := e.do("GET", "/nope", nil, "").Header().Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAccessLogKeepsSecretsOut(t *testing.T) {
	e := newEnv(t)
	token := e.eventsToken("alice")
	e.ask(200, "GET", channelPrefix+"/stats", bearer(token), "", nil)
	e.ask(400, "GET", channelPrefix+"/stats?sesame=sesame", bearer(token), "", nil)
	e.ask(202, "POST", "/api/v2/ingest/generic", e.keyHeader(""), `{"a":"sesame"}`, nil)
	e.ask(401, "POST", "/ucp/v2/login", nil, `{"username":"sesame","password":"sesame","domain":"sesame"}`, nil)
	log := e.log.String()

	for _, secret := range []string{"sesame", token, e.key, password} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log", secret)
		}
	}

	for _, want := range []string{
		"method=GET route=/api/v2/cc_events_channel/stats status=200", "account=demo",
		"method=POST route=/api/v2/ingest/:format status=202", "bytes=14",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
}

func TestMetricLabelsAreBounded(t *testing.T) {
	e := newEnv(t)
	series := func() (n int) {
		families, err := e.metricRegistry.Gather()
		must(t, err)
		for _, f := range families {
			if strings.HasPrefix(f.GetName(), "trunkline_api_") {
				n += len(f.GetMetric())
			}
		}

		return n
	}

	e.do("GET", "/nope", nil, "")
	w := httptest.NewRecorder()
	e.api.ServeHTTP(w, httptest.NewRequest("MADEUP0", "/nope", nil))
	e.ask(401, "POST", "/api/v2/ingest/x", nil, "", nil)
	before := series()

	for i := range 20 {
		e.do("GET", "/nope"+strconv.Itoa(i), nil, "")
		e.ask(401, "POST", "/api/v2/ingest/x"+strconv.Itoa(i), nil, "", nil)
		e.api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("MADEUP"+strconv.Itoa(i), "/nope", nil))
	}

	if after := series(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, tc := range []struct {
		name, peer string
		forwarded  []string
		proxies    []netip.Prefix
		want       string
	}{
		{"nobody is trusted", "10.1.2.3:5", []string{"192.0.2.1"}, nil, "10.1.2.3"},
		{"a client cannot speak for another", "192.0.2.9:5", []string{"192.0.2.1"}, proxies, "192.0.2.9"},
		{"loopback is not trusted by itself", "127.0.0.1:5", []string{"192.0.2.1"}, proxies, "127.0.0.1"},
		{"a proxy can", "10.1.2.3:5", []string{"192.0.2.1"}, proxies, "192.0.2.1"},
		{"the last that no proxy vouches for", "10.1.2.3:5", []string{"6.6.6.6, 192.0.2.1,10.9.9.9"}, proxies,
			"192.0.2.1"},
		{"several headers", "[fd00::1]:5", []string{"6.6.6.6", "2001:db8::1"}, proxies, "2001:db8::1"},
		{"a chain that the client forged", "10.1.2.3:5", []string{"6.6.6.6, 10.0.0.1", "10.9.9.9, 192.0.2.1"}, proxies,
			"192.0.2.1"},
		{"a forged proxy before the client", "10.1.2.3:5", []string{"6.6.6.6, 10.9.9.9, 192.0.2.1, 10.9.9.9"}, proxies,
			"192.0.2.1"},
		{"a client among the proxies' neighbours", "10.1.2.3:5", []string{"6.6.6.6, 10.9.9.9"},
			[]netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}, "10.9.9.9"},
		{"a neighbour of the proxy that connects itself", "10.9.9.9:5", []string{"6.6.6.6"},
			[]netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}, "10.9.9.9"},
		{"what a proxy wrote is no address", "10.1.2.3:5", []string{"6.6.6.6, unknown"}, proxies, "10.1.2.3"},
		{"rubbish", "10.1.2.3:5", []string{"unknown"}, proxies, "10.1.2.3"},
		{"no header", "10.1.2.3:5", nil, proxies, "10.1.2.3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = tc.peer
			r.Header["X-Forwarded-For"] = slices.Clone(tc.forwarded)
			if got := clientAddress(tc.proxies)(r); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
