package collector

import (
	"compress/gzip"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func spansNamed(name string) []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: name}}}}}}
}

// received decodes a request's body.
func received(t *testing.T, r *http.Request) string {
	t.Helper()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return ""
		}
		body = unpacked
	}

	text, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}

	var data tracepb.TracesData
	if err := proto.Unmarshal(text, &data); err != nil {
		t.Error(err)
	}

	return data.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()[0].GetName()
}

// rejecting is the answer of a collector that rejected some spans.
func rejecting(spans uint64, reason string) []byte {
	inner := protowire.AppendTag(nil, 1, protowire.VarintType)
	inner = protowire.AppendVarint(inner, spans)
	inner = protowire.AppendTag(inner, 2, protowire.BytesType)
	inner = protowire.AppendString(inner, reason)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
}

func TestSpansAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		env     map[string]string
		answers []int // of the attempts, in their order
		body    []byte
		want    string // the error's text; empty: none
	}{
		"at once":               {nil, []int{200}, nil, ""},
		"compressed":            {map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, []int{200}, nil, ""},
		"again after 503":       {nil, []int{503, 200}, nil, ""},
		"not again after 400":   {nil, []int{400}, []byte("no such tenant"), "400 Bad Request: no such tenant"},
		"no redirect":           {nil, []int{307}, nil, "307"},
		"all taken":             {nil, []int{200}, rejecting(0, ""), ""},
		"some rejected":         {nil, []int{200}, rejecting(3, "too old"), "rejected 3 spans: too old"},
		"an answer that is cut": {nil, []int{200}, rejecting(3, "too old")[:6], "the collector's answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var attempts atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if name := received(t, r); name != "span" || r.Header.Get("X-Tenant") != "acme" {
					t.Errorf("span %s, headers %v", name, r.Header)
				}

				w.Header().Set("Content-Type", contentType)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.answers[attempts.Add(1)-1])
				_, _ = w.Write(c.body)
			}))
			defer server.Close()

			client, err := New(
				Config{URL: server.URL, Headers: map[string]string{"X-Tenant": "acme"},
					Getenv: func(name string) string { return c.env[name] }})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Stop(t.Context()) }()

			err = client.UploadTraces(t.Context(), spansNamed("span"))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}

			if int(attempts.Load()) != len(c.answers) {
				t.Errorf("%d attempts, want %d", attempts.Load(), len(c.answers))
			}
		})
	}
}

func TestFilesAndVariables(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { received(t, r) }))
	defer server.Close()

	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		env      map[string]string
		valid    bool // New returns a client
		reaching bool // the server accepts what it uploads
	}{
		{nil, true, false}, // the system does not know the authority
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": file}, true, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere", "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": file},
			true, true},
		{map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere"}, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_KEY": file}, false, false},
		{map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, false, false},
	} {
		client, err := New(Config{URL: server.URL, Getenv: func(name string) string { return c.env[name] }})
		if (err == nil) != c.valid {
			t.Errorf("%v: %v", c.env, err)
		}
		if err != nil {
			continue
		}

		if err := client.UploadTraces(t.Context(), spansNamed("span")); (err == nil) != c.reaching {
			t.Errorf("%v: %v", c.env, err)
		}
	}
}

// Stop ends an attempt and the wait for the next one.
func TestStopEndsWaiting(t *testing.T) {
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusServiceUnavailable)
		close(asked)
	}))
	defer server.Close()

	client, err := New(Config{URL: server.URL, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}

	go func() {
		<-asked
		_ = client.Stop(t.Context())
	}()

	if err := client.UploadTraces(t.Context(), spansNamed("span")); err == nil {
		t.Error("the spans are said to be sent")
	}
}
