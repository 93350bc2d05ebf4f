package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"trunkline/internal/freeport"
)

const (
	clientTrace         = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan          = "00f067aa0ba902b7"
	traceparentOfClient = "00-" + clientTrace + "-" + clientSpan
)

// tracedCluster is one embedded node that sends its spans to address.
func tracedCluster(t testing.TB, address, sample string) *cluster {
	t.Helper()
	broker := freeport.Address(t)
	return newCluster(t, []string{broker}, "", newNode(t, "traced", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN": broker, "TRUNKLINE_LOG_LEVEL": "debug",
		"TRUNKLINE_LOG_FORMAT": "json", "TRUNKLINE_ORIGINATION_DRIVER": "auto",
		"TRUNKLINE_ORIGINATION_INTERNATIONAL": "allow",
		"TRUNKLINE_TRACING_ENDPOINT":          address, "TRUNKLINE_TRACING_SAMPLE": sample,
		"TRUNKLINE_TRACING_HEADERS":            "X-Tenant=acme,Authorization=Bearer%20c0llector",
		"TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS": "127.0.0.0/8",
		"OTEL_BSP_SCHEDULE_DELAY":              "50", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
	}))
}

// postTraced posts an event of the demo account as part of a trace.
func (c *cluster) postTraced(t testing.TB, traceparent string, number int) {
	t.Helper()
	a := c.ingestNode.mustCall(t, http.MethodPost, "/api/v2/ingest/svc.cc", map[string]string{
		"X-API-Key": c.key, "Content-Type": typeJSON, "traceparent": traceparent, "tracestate": "vendor=1,other=2",
	}, record("demo", number))
	if a.status != http.StatusAccepted {
		t.Fatalf("ingest answers %v", a)
	}
}

func TestTracing(t *testing.T) {
	t.Parallel()
	out := newCollector(t)
	c := tracedCluster(t, out.url, "1")
	n := c.ingestNode
	alice := n.dialler(t, "alice")
	token := n.login(t, apiPaths, user("alice"))
	one := n.subscribe(t, subscription{paths: apiPaths, token: token})
	two := n.subscribe(t, subscription{paths: wsPaths, token: token, sse: true})

	t.Run("a client's trace goes from the request to the socket", func(t *testing.T) {
		c.postTraced(t, traceparentOfClient+"-01", 1)
		got := one.awaitCount(t, 1)[0]
		two.awaitCount(t, 1)
		request := out.await(t, clientTrace, clientSpan, "POST /api/v2/ingest/:format")
		send := out.await(t, clientTrace, request.id, "send cc.raw")

		process := out.await(t, clientTrace, send.id, "process cc.raw")
		deliver := out.await(t, clientTrace, process.id, "deliver cc.evt")
		for _, w := range []struct {
			span
			kind  tracepb.Span_SpanKind
			about map[string]string
		}{
			{request, tracepb.Span_SPAN_KIND_SERVER,
				map[string]string{"http.request.method": "POST", "http.route": "/api/v2/ingest/:format",
					"http.response.status_code": "202", "url.scheme": "https", "trunkline.account.id": "demo",
					"service.name": "trunkline", "deployment.environment.name": "test"}},
			{send, tracepb.Span_SPAN_KIND_PRODUCER,
				map[string]string{"messaging.system": "kafka", "messaging.operation.type": "send",
					"messaging.destination.name": "cc.raw", "messaging.batch.message_count": "1"}},
			{process, tracepb.Span_SPAN_KIND_CONSUMER,
				map[string]string{"messaging.operation.type": "process", "trunkline.account.id": "demo",
					"messaging.destination.name": "cc.raw", "messaging.consumer.group.name": "trunkline-normalizer"}},
			{deliver, tracepb.Span_SPAN_KIND_CONSUMER,
				map[string]string{"messaging.destination.name": "cc.evt", "trunkline.event.id": got.ID,
					"trunkline.subscribers.matched": "2", "trunkline.subscribers.written": "2"}},
		} {
			if w.span.kind != w.kind || w.failed || w.traceState != "vendor=1,other=2" ||
				w.span.attributes["service.version"] == "" || w.durationNS == 0 {
				t.Errorf("%+v", w.span)
			}

			for key, want := range w.about {
				if w.span.attributes[key] != want {
					t.Errorf("%s: %s is %q, want %q", w.name, key, w.span.attributes[key], want)
				}
			}
		}
	})

	t.Run("a trace begins here", func(t *testing.T) {
		c.postTraced(t, "00-what-no", 2)

		got := one.awaitCount(t, 2)[1]
		var deliver span
		eventually(t, "its delivery", func() error {
			var ok bool
			deliver, ok = out.find(func(s span) bool { return s.attributes["trunkline.event.id"] == got.ID })
			if !ok {
				return errors.New("none")
			}
			return nil
		})

		request := out.await(t, deliver.trace, "", "POST /api/v2/ingest/:format")
		process := out.await(t, deliver.trace, out.await(t, deliver.trace, request.id, "send cc.raw").id,
			"process cc.raw")
		if deliver.parent != process.id || deliver.traceState != "" {
			t.Errorf("%+v below %+v", deliver, process)
		}

		// The log line of the request has the same trace.
		log, err := os.ReadFile(n.log)
		if err != nil || !strings.Contains(string(log), `"trace_id":"`+deliver.trace+`"`) {
			t.Errorf("no line has trace_id %s: %v", deliver.trace, err)
		}
	})

	t.Run("a call record", func(t *testing.T) {
		const trace = "11111111111111111111111111111111"
		row := lines(readFile(t, "../format/freeswitch/testdata/freeswitch.json_cdr/simple.in.jsonl"))[0]
		a := n.mustCall(t, http.MethodPost, "/api/v2/ingest/freeswitch.json_cdr",
			map[string]string{"X-API-Key": c.key, "Content-Type": typeJSON,
				"traceparent": "00-" + trace + "-" + clientSpan + "-01"}, row)
		if a.status != http.StatusAccepted {
			t.Fatal(a)
		}

		request := out.await(t, trace, clientSpan, "POST /api/v2/ingest/:format")
		process := out.await(t, trace, out.await(t, trace, request.id, "send cdr.raw").id, "process cdr.raw")
		index := out.await(t, trace, process.id, "process cdr")
		if index.attributes["messaging.consumer.group.name"] != "trunkline-cdrindex" ||
			index.attributes["trunkline.account.id"] != "demo" {
			t.Errorf("%+v", index)
		}
	})

	t.Run("a dead letter", func(t *testing.T) {
		const trace = "22222222222222222222222222222222"
		a := n.mustCall(t, http.MethodPost, "/api/v2/ingest/svc.cc",
			map[string]string{"X-API-Key": c.key, "Content-Type": typeJSON,
				"traceparent": "00-" + trace + "-" + clientSpan + "-01"}, `{"Account-ID":7}`)
		if a.status != http.StatusAccepted {
			t.Fatal(a)
		}

		request := out.await(t, trace, clientSpan, "POST /api/v2/ingest/:format")
		process := out.await(t, trace, out.await(t, trace, request.id, "send cc.raw").id, "process cc.raw")
		if !process.failed || process.attributes["error.type"] == "" {
			t.Errorf("%+v", process)
		}
	})

	t.Run("click to call", func(t *testing.T) {
		id := alice.dial(t, "+431234567")
		alice.await(t, id, "ended")

		request, ok := span{}, false
		eventually(t, "the request", func() error {
			request, ok = out.find(func(s span) bool { return s.name == "POST /ucp/v2/c2c/:destination" })
			if !ok {
				return errors.New("none")
			}
			return nil
		})

		originate := out.await(t, request.trace, request.id, "originate")
		var states []string
		eventually(t, "progress, delivered", func() error {
			states = nil
			for _, s := range out.receivedSpans() {
				if s.parent == originate.id && s.name == "send cc.raw" {
					process := out.await(t, request.trace, s.id, "process cc.raw")
					out.await(t, request.trace, process.id, "deliver cc.evt")
					states = append(states, s.attributes["trunkline.call.state"])
				}
			}

			if !slices.Contains(states, "accepted") || !slices.Contains(states, "ended") {
				return fmt.Errorf("%q", states)
			}

			return nil
		})

		for _, s := range out.receivedSpans() {
			if strings.Contains(fmt.Sprint(s), "431234567") {
				t.Errorf("a phone number is sent: %+v", s)
			}
		}
	})

	t.Run("a recording", func(t *testing.T) {
		const trace = "33333333333333333333333333333333"

		header := map[string]string{"X-Account-ID": "demo", "Content-Type": "audio/wav",
			"traceparent": "00-" + trace + "-" + clientSpan + "-01"}
		for name, value := range n.dialler(t, "admin").header {
			header[name] = value
		}

		if a := n.mustCall(t, http.MethodPut, "/api/v2/recordings/traced", header,
			"not really audio"); a.status != http.StatusCreated {
			t.Fatal(a)
		}
		if a := n.mustCall(t, http.MethodGet, "/api/v2/recordings/traced", header, ""); a.status != http.StatusOK {
			t.Fatal(a)
		}

		put := out.await(t, trace, clientSpan, "PUT /api/v2/recordings/:recording_id")
		get := out.await(t, trace, clientSpan, "GET /api/v2/recordings/:recording_id")
		for _, s := range []span{out.await(t, trace, put.id, "recording store"),
			out.await(t, trace, get.id, "recording open")} {
			if s.attributes["trunkline.recording.size"] != "16" ||
				s.attributes["trunkline.recording.encrypted"] != "false" {
				t.Errorf("%+v", s)
			}
		}
	})

	t.Run("an AI session", func(t *testing.T) {
		port := freeport.Address(t)
		echo := startForeign(t, nil, program(t), "ai", "echo", "--listen", port)
		echo.await(t, "to listen", func(out, _ []string) bool { return len(out) > 0 })

		id := n.createProvider(t, "g711_ulaw", 8000, "ws://"+port+"/")
		var session span
		eventually(t, "the session", func() error {
			var ok bool
			session, ok = out.find(
				func(s span) bool {
					return s.name == "ai_session" &&
						s.attributes["trunkline.ai_session.provider_id"] == id
				})
			if !ok {
				return errors.New("none")
			}

			return nil
		})

		out.await(t, session.trace, session.id, "ai_session connect")
		if session.parent == "" || session.attributes["trunkline.ai_session.reason"] != "caller_hangup" {
			t.Errorf("%+v", session)
		}
	})

	for _, header := range out.requests {
		if header.Get("X-Tenant") != "acme" || header.Get("Authorization") != "Bearer c0llector" {
			t.Errorf("the collector gets %v", header)
		}
	}

	for _, s := range out.receivedSpans() {
		for _, secret := range []string{token, c.key, password, "s3cret", "c0llector"} {
			if strings.Contains(fmt.Sprint(s), secret) {
				t.Errorf("a secret is sent: %+v", s)
			}
		}
	}
}

// With sample 0 a client's sampling decision still applies, for and against spans.
func TestTracingOfTheClientsOnly(t *testing.T) {
	t.Parallel()
	out := newCollector(t)
	c := tracedCluster(t, out.url, "0")
	s := c.ingestNode.subscribe(t, subscription{paths: apiPaths, token: c.ingestNode.login(t, apiPaths, user("alice"))})
	c.postTraced(t, "", 1)
	c.postTraced(t, "00-55555555555555555555555555555555-"+clientSpan+"-00", 2)
	c.postTraced(t, traceparentOfClient+"-01", 3)
	s.awaitCount(t, 3)

	eventually(t, "the delivery of the third", func() error {
		if _, ok := out.find(func(s span) bool { return s.name == "deliver cc.evt" }); !ok {
			return errors.New("none")
		}
		return nil
	})

	c.ingestNode.signal(t, syscall.SIGTERM) // queued spans are sent before the end
	if code, ok := c.ingestNode.awaitExit(patience); !ok || code != 0 {
		t.Fatal(code, ok)
	}

	for _, s := range out.receivedSpans() {
		if s.trace != clientTrace {
			t.Errorf("unexpected span %+v", s)
		}
	}

	if got := len(out.receivedSpans()); got != 4 {
		t.Errorf("%d spans, want 4:\n%s", got, out)
	}
}

// With tracing off nothing is sent, whatever the environment variables, and records have their
// usual headers.
func TestTracingOff(t *testing.T) {
	t.Parallel()
	out := newCollector(t)
	broker := freeport.Address(t)
	c := newCluster(t, []string{broker}, "", newNode(t, "untraced", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN": broker,
		"OTEL_EXPORTER_OTLP_ENDPOINT": out.url, "OTEL_TRACES_SAMPLER": "always_on",
	}))
	s := c.ingestNode.subscribe(t, subscription{paths: apiPaths, token: c.ingestNode.login(t, apiPaths, user("alice"))})
	c.postTraced(t, "", 1)
	c.postTraced(t, traceparentOfClient+"-01", 2)
	s.awaitCount(t, 2)
	opened := c.kafka(t)

	for topic, names := range map[string][]string{
		"cc.raw": {"format", "source"},
		"cc.evt": {"type", "account_id", "original_format", "name", "queue_id", "source_position", "source_log"},
	} {
		records := readTopic(t, opened, topic)
		if len(records) != 2 {
			t.Fatalf("%d records on %s", len(records), topic)
		}

		for i, want := range [][]string{names, append(slices.Clone(names), "traceparent")} {
			var have []string
			for _, h := range records[i].Headers {
				have = append(have, h.Key)
			}

			if !slices.Equal(have, want) ||
				i == 1 && string(records[i].Header("traceparent")) != traceparentOfClient+"-01" {
				t.Errorf("%s: headers %q, want %q", topic, have, want)
			}
		}
	}

	c.ingestNode.signal(t, syscall.SIGTERM)
	if code, ok := c.ingestNode.awaitExit(patience); !ok || code != 0 {
		t.Fatal(code, ok)
	}
	if len(out.requests) > 0 {
		t.Errorf("the collector gets %v", out.requests)
	}
}

// An unavailable or unresponsive collector loses its spans and has no other effect.
func TestTracingWithoutACollector(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = mute.Close() })
	for name, address := range map[string]string{"away": "http://" + freeport.Address(t),
		"mute": "http://" + mute.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := tracedCluster(t, address, "1")
			n := c.ingestNode
			s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("alice"))})

			for i := range 20 {
				c.postTraced(t, traceparentOfClient+"-01", i)
			}

			s.awaitCount(t, 20)
			if name == "away" {
				eventually(t, "the spans to be given up", func() error {
					_, text, err := n.probe("/metrics")
					if err == nil && strings.Contains(text, `trunkline_tracing_spans_total{result="failed"} 0`) {
						err = errors.New("none is")
					}
					return err
				})
			}

			n.signal(t, syscall.SIGTERM)
			if code, ok := n.awaitExit(patience); !ok || code != 0 {
				t.Fatal(code, ok)
			}

			log := readFile(t, n.log)
			if count := strings.Count(log, "sending spans failed, spans lost"); count > 1 ||
				name == "away" && count == 0 {
				t.Errorf("%d lines say that spans are lost", count)
			}
			if strings.Contains(log, "c0llector") {
				t.Error("the log has the collector's key")
			}
		})
	}
}
