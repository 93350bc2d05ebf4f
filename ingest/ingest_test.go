package ingest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/format/split"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/jsonscan"
	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

// fakeKafka is a producer that keeps the records, or fails. Its topics are one partition.
type fakeKafka struct {
	mu      sync.Mutex
	calls   int
	records []kafka.Record
	respond func(ctx context.Context) error // nil: succeeds
	stores  func(n int) int                 // how many of n records are stored; nil: all
}

// KeyPartition implements Log.
func (k *fakeKafka) KeyPartition(context.Context, string, []byte) (int, error) { return 0, nil }

// OffsetAt implements Log.
func (k *fakeKafka) OffsetAt(_ context.Context, _ string, _ int, at time.Time) (int64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := slices.IndexFunc(k.records, func(r kafka.Record) bool { return !r.Time.Before(at) })
	if n < 0 {
		n = len(k.records)
	}
	return int64(n), nil
}

// Scan implements Log.
func (k *fakeKafka) Scan(_ context.Context, _ string, _ int, from, to int64, each func(*kafka.Record)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.records[from:to] {
		each(&k.records[int(from)+i])
	}
	return nil
}

func (k *fakeKafka) Produce(ctx context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	k.calls++
	n := len(records)

	if k.stores != nil {
		n = k.stores(n)
	}

	for _, r := range records[:n] {
		r.Time = time.Now()
		k.records = append(k.records, r)
	}
	k.mu.Unlock()

	if k.respond != nil {
		return k.respond(ctx)
	}

	return nil
}

// accountList has the accounts that every caller may name.
type accountList []string

func (a accountList) MayIngestFor(_ *identity.Principal, id string) bool {
	for _, known := range a {
		if known == id {
			return true
		}
	}
	return false
}

// testFormats are the real ones; but each names its account as account_id.
func testFormats(name string) (*format.Format, bool) {
	f, ok := registry.Lookup(name)
	if !ok {
		return nil, false
	}
	copied := *f
	copied.Keys = jsonscan.KeysOf("account_id")
	copied.OpenEnvelope = nil
	copied.ReadAccount = func(fields *format.Fields) (string, error) {
		return format.StrictText(fields[0], "account_id")
	}
	return &copied, true
}

var theCaller = &identity.Principal{KeyID: "k1", AccountID: "acme", Role: identity.RoleAdmin}

// ingestOn returns an Ingest that produces to k, without Idempotency-Keys.
func ingestOn(t testing.TB, config Settings, k *fakeKafka) *Ingest {
	t.Helper()
	i, err := newIngest(config,
		Deps{Formats: testFormats, Accounts: accountList{"acme", "acme-sub"}, Producer: k, LogReader: k},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// testAccept is Accept, for tests that look at nothing but the count.
func (i *Ingest) testAccept(ctx context.Context, r Request) (int, error) {
	result, err := i.Accept(ctx, r)
	return result.Accepted, err
}

// heldBytes returns the memory of admitted bodies.
func heldBytes(i *Ingest) int64 {
	held, _ := i.admission.stats()
	return held
}

// post is a request of theCaller.
func post(format, contentType, body string) Request {
	return Request{
		Format: format, ContentType: contentType, ContentLength: int64(len(body)),
		Body: strings.NewReader(body), Caller: theCaller,
	}
}

// gzipped returns the parts, each as a member of its own.
func gzipped(t testing.TB, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, part := range parts {
		w := gzip.NewWriter(&b)
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}

	return b.String()
}

func TestAcceptedRecords(t *testing.T) {
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	k := &fakeKafka{}
	i := ingestOn(t, DefaultSettings(), k)
	body := `[ {"type":"AGENT_LOGIN", "n":1.0}, {"account_id":"acme-sub"},{"account_id":7} ]`
	r := post("generic", "application/json; charset=UTF-8", body)
	r.Trace = trace

	if n, err := i.testAccept(t.Context(), r); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if k.calls != 1 {
		t.Errorf("%d Produce calls for one body", k.calls)
	}

	for n, want := range []struct{ key, value string }{
		{"acme", `{"type":"AGENT_LOGIN", "n":1.0}`},
		{"acme-sub", `{"account_id":"acme-sub"}`},
		{"acme", `{"account_id":7}`}, // unreadable: the caller's, to become a dead letter
	} {
		got := k.records[n]
		if string(got.Key) != want.key || string(got.Value) != want.value {
			t.Errorf("record %d: key %s value %s", n, got.Key, got.Value)
		}
		if got.Topic != "cc.raw" || got.Partition != kafka.AnyPartition || string(got.Header("format")) != "generic" ||
			string(got.Header("source")) != "apikey:k1" || string(got.Header("traceparent")) != trace {
			t.Errorf("record %d: %+v", n, got)
		}
	}

	if held := heldBytes(i); held != 0 {
		t.Errorf("%d bytes still held", held)
	}
	if got := testutil.ToFloat64(i.metrics.records.WithLabelValues("cc.raw")); got != 3 {
		t.Errorf("counted %v records", got)
	}
}

func TestUserAsSourceAndNoBadTrace(t *testing.T) {
	k := &fakeKafka{}
	r := post("svc.cc", "", `{}`)
	r.Caller = &identity.Principal{UserID: "u1", AccountID: "acme"}
	r.Trace = "00-bad\r\nx: y"

	if _, err := ingestOn(t, DefaultSettings(), k).testAccept(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := k.records[0]; string(got.Header("source")) != "user:u1" || got.Header("traceparent") != nil {
		t.Errorf("%+v", got)
	}
}

func TestAcceptsEveryEncoding(t *testing.T) {
	for _, tc := range []struct {
		name, format, contentType, encoding, body string
		want                                      int
	}{
		{"no Content-Type is JSON", "svc.cc", "", "", `{}`, 1},
		{"empty array", "svc.cc", "application/json", "", `[]`, 0},
		{"NDJSON", "svc.cc", "application/x-ndjson", "", "{}\n{}\n", 2},
		{"empty NDJSON", "svc.cc", "application/x-ndjson", "", "", 0},
		{"gzip", "svc.cc", "application/json", "gzip", gzipped(t, `[{},{}]`), 2},
		{"gzip of several members", "svc.cc", "application/x-ndjson", "GZIP", gzipped(t, "{}\n", "", "{}"), 2},
		{"identity", "svc.cc", "Application/JSON", "identity", `{}`, 1},
		{"plain events", "freeswitch.event", "text/event-plain", "", "Event-Name: A\n\nEvent-Name: B\n", 2},
		{"plain call center events", "freeswitch.callcenter", "text/event-plain", "gzip",
			gzipped(t, "Event-Name: A\n"), 1},
		{"call record form", "freeswitch.json_cdr", "application/x-www-form-urlencoded", "", "cdr=%7B%7D", 1},
		{"call record base64 form", "freeswitch.json_cdr", "application/x-www-form-base64-encoded", "", "cdr=e30=", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := &fakeKafka{}
			r := post(tc.format, tc.contentType, tc.body)
			r.ContentEncoding = tc.encoding
			n, err := ingestOn(t, DefaultSettings(), k).testAccept(t.Context(), r)
			if err != nil || n != tc.want || len(k.records) != tc.want {
				t.Errorf("accepted %d, stored %d, error %v", n, len(k.records), err)
			}

			if tc.want == 0 && k.calls != 0 {
				t.Error("nothing was produced, in a call")
			}
		})
	}
}

func TestRefusedBodiesStoreNothing(t *testing.T) {
	big := `{"a":"` + strings.Repeat("x", split.MaxRecord) + `"}`
	huge := strings.Repeat(" ", MaxBody+1)
	for _, tc := range []struct {
		name, format, contentType, encoding, body string
		kind                                      fault.Kind
		message                                   string
	}{
		{"unknown format", "nope", "application/json", "", `{}`, fault.KindNotFound, "Unknown format"},
		{"our own format", "trunkline.event", "application/json", "", `{}`, fault.KindNotFound, "Unknown format"},
		{"unknown type", "svc.cc", "text/plain", "", `{}`, fault.KindUnsupported,
			"This format does not accept this Content-Type"},
		{"broken type", "svc.cc", "application/json; charset", "", `{}`, fault.KindUnsupported,
			"This format does not accept this Content-Type"},
		{"another charset", "svc.cc", "application/json; charset=latin1", "", `{}`, fault.KindUnsupported,
			"This format does not accept this Content-Type"},
		{"plain for another format", "svc.cc", "text/event-plain", "", "A: b\n", fault.KindUnsupported,
			"This format does not accept this Content-Type"},
		{"form for another format", "freeswitch.event", "application/x-www-form-urlencoded", "", "cdr=%7B%7D",
			fault.KindUnsupported, "This format does not accept this Content-Type"},
		{"another encoding", "svc.cc", "", "br", `{}`, fault.KindUnsupported,
			"The Content-Encoding must be gzip or absent"},
		{"not gzip", "svc.cc", "", "gzip", `{}`, fault.KindInvalid,
			"The body is truncated or does not match its Content-Encoding"},
		{"gzip cut off", "svc.cc", "", "gzip", gzipped(t, `{}`)[:20], fault.KindInvalid,
			"The body is truncated or does not match its Content-Encoding"},
		{"rubbish after gzip", "svc.cc", "", "gzip", gzipped(t, `{}`) + "rubbish", fault.KindInvalid,
			"The body is truncated or does not match its Content-Encoding"},
		{"empty", "svc.cc", "application/json", "", ``, fault.KindInvalid, "Line 1: the body is empty"},
		{"broken after good records", "svc.cc", "application/x-ndjson", "", "{}\n{}\n{\n{}", fault.KindInvalid,
			"Line 3: the JSON ends early"},
		{"foreign account after good records", "svc.cc", "application/x-ndjson", "", "{}\n{\"account_id\":\"other\"}",
			fault.KindForbidden,
			"Line 2: a record names an account that this caller may not write to"},
		{"record too large", "svc.cc", "application/x-ndjson", "", "{}\n" + big, fault.KindTooLarge,
			"Line 2: a record is over 1 MiB"},
		{"body too large", "svc.cc", "application/x-ndjson", "", huge, fault.KindTooLarge, "The body is over 32 MiB"},
		{"gzip bomb", "svc.cc", "application/x-ndjson", "gzip", gzipped(t, huge), fault.KindTooLarge,
			"The body is over 32 MiB"},
		{"too many records for any budget", "svc.cc", "application/x-ndjson", "", strings.Repeat("{}\n", 1<<18),
			fault.KindTooLarge,
			"The body needs more memory than this server allows for one body"},
		{"call record too large in its form", "freeswitch.json_cdr", "application/x-www-form-urlencoded", "",
			"cdr=" + strings.Repeat("%20", split.MaxRecord) + "%7B%7D", fault.KindTooLarge,
			"Line 1: a record is over 1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k := &fakeKafka{}
			config := DefaultSettings()
			config.MaxInFlightBytes = 2*MaxBody + 1<<20
			i := ingestOn(t, config, k)
			r := post(tc.format, tc.contentType, tc.body)
			r.ContentEncoding = tc.encoding

			if tc.name == "body too large" {
				r.ContentLength = -1 // chunked: found out while reading
			}

			n, err := i.testAccept(t.Context(), r)
			if n != 0 || fault.KindOf(err) != tc.kind || fault.As(err).Message != tc.message {
				t.Errorf("accepted %d, error %v (%s)", n, err, fault.KindOf(err))
			}

			if k.calls != 0 {
				t.Error("Kafka was called")
			}
			if held := heldBytes(i); held != 0 || len(i.admission.callers) != 0 {
				t.Errorf("%d bytes and %v still held", held, i.admission.callers)
			}
			if got := testutil.ToFloat64(i.metrics.bodies.WithLabelValues(string(tc.kind))); got != 1 {
				t.Errorf("counted %v refusals", got)
			}
		})
	}
}

func TestContentLengthAloneIsEnoughToRefuse(t *testing.T) {
	r := post("svc.cc", "", "")
	r.ContentLength, r.Body = MaxBody+1, iotest.ErrReader(errors.New("read though too large"))
	_, err := ingestOn(t, DefaultSettings(), &fakeKafka{}).testAccept(t.Context(), r)
	if fault.KindOf(err) != fault.KindTooLarge {
		t.Error(err)
	}
}

// An endless row of empty gzip members unpacks to nothing, and is still bounded.
func TestEndlessGzipOfNothing(t *testing.T) {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	w.Extra = make([]byte, 60_000)

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	r := post("svc.cc", "application/x-ndjson", "")
	r.ContentEncoding, r.ContentLength = "gzip", -1
	r.Body = &endless{chunk: member.String()}
	_, err := ingestOn(t, DefaultSettings(), &fakeKafka{}).testAccept(t.Context(), r)
	if fault.KindOf(err) != fault.KindTooLarge {
		t.Error(err)
	}
}

// endless repeats a chunk without end.
type endless struct {
	chunk string
	at    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.chunk[e.at:])
	e.at = (e.at + n) % len(e.chunk)
	return n, nil
}

func TestKafkaAway(t *testing.T) {
	k := &fakeKafka{respond: func(context.Context) error { return errors.New("broker secret detail") }}
	n, err := ingestOn(t, DefaultSettings(), k).testAccept(t.Context(), post("svc.cc", "", `{}`))
	f := fault.As(err)
	if n != 0 || f.Kind != fault.KindUnavailable || f.RetryAfter <= 0 ||
		f.Message != "Kafka did not acknowledge the body: none, some or all of its records may be stored; send it again" {
		t.Errorf("%d %+v", n, f)
	}
}

func TestKafkaSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKafka{respond: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		began := time.Now()
		_, err := ingestOn(t, DefaultSettings(), k).testAccept(t.Context(), post("svc.cc", "", `{}`))
		if fault.KindOf(err) != fault.KindUnavailable || time.Since(began) != DefaultSettings().ProduceTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A Content-Length reserves at most maxInitialReserve, and received bytes take at most twice their size.
func TestMemoryIsPaidForAsItArrives(t *testing.T) {
	i := ingestOn(t, DefaultSettings(), &fakeKafka{})
	r := post("svc.cc", "", "")
	r.ContentLength = MaxBody

	arrived := 0
	r.Body = readerFunc(func(p []byte) (int, error) {
		if held := heldBytes(i); held > int64(max(2*arrived+reservationStep, maxInitialReserve)) {
			t.Fatalf("holds %d with %d arrived", held, arrived)
		}
		if arrived >= 1<<20 {
			return 0, io.ErrUnexpectedEOF
		}

		n := min(len(p), 1000)
		arrived += n
		return n, nil
	})

	if _, err := i.testAccept(t.Context(), r); fault.KindOf(err) != fault.KindInvalid {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestSettingsValidate(t *testing.T) {
	if err := setting.Validate("ingest", DefaultSettings()); err != nil {
		t.Error(err)
	}

	for name, change := range map[string]func(*Settings){
		"max_in_flight_bytes":   func(c *Settings) { c.MaxInFlightBytes = MaxBody },
		"max_bodies_per_caller": func(c *Settings) { c.MaxBodiesPerCaller = 0 },
		"produce_timeout":       func(c *Settings) { c.ProduceTimeout = 0 },
	} {
		c := DefaultSettings()
		change(&c)
		if err := setting.Validate("ingest", c); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A caller's name in Latin-1 makes no body of a platform unacceptable; our own formats are UTF-8.
func TestBytesThatAreNotUTF8AreReplacedInRecordsOfPlatforms(t *testing.T) {
	const body, valid = "{\"name\":\"Zo\xe9\"}", "{\"name\":\"Zo\uFFFD\"}"
	for _, name := range []string{"freeswitch.json_cdr", "freeswitch.event", "asterisk.cdr", "asterisk.ami",
		"kazoo.cdr", "kazoo.acdc"} {
		for _, contentType := range []string{"application/json", "application/x-ndjson"} {
			k := &fakeKafka{}
			i := ingestOn(t, DefaultSettings(), k)
			n, err := i.testAccept(t.Context(), post(name, contentType, body))
			if err != nil || n != 1 || string(k.records[0].Value) != valid {
				t.Errorf("%s as %s: %d records %v, %v", name, contentType, n, k.records, err)
			}

			if heldBytes(i) != 0 {
				t.Errorf("%s: %d bytes are held", name, heldBytes(i))
			}
			if got := testutil.ToFloat64(i.metrics.repaired); got != 1 {
				t.Errorf("%s: counted %v", name, got)
			}
		}
	}

	for _, name := range []string{"svc.cc", "svc.cdr", "generic"} {
		k := &fakeKafka{}
		_, err := ingestOn(t, DefaultSettings(), k).testAccept(t.Context(), post(name, "application/json", body))
		if fault.KindOf(err) != fault.KindInvalid || len(k.records) != 0 {
			t.Errorf("%s: %d records, %v", name, len(k.records), err)
		}
	}
}
