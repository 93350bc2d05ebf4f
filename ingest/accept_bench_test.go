package ingest

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"trunkline/format/registry"
	"trunkline/format/split"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// benchmarkAccept measures Accept with a body of so many records of a format.
func benchmarkAccept(b *testing.B, formatName, contentType, body string, records int) {
	i := ingestOn(b, DefaultSettings(), &fakeKafka{})
	i.producer = discard{}
	i.formats, i.accounts = registry.Lookup, anyAccount{}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()

	for b.Loop() {
		if n, err := i.testAccept(b.Context(), post(formatName, contentType, body)); n != records || err != nil {
			b.Fatal(n, err)
		}
	}

	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// sample returns a file of records of FreeSWITCH.
func sample(b *testing.B, name string) string {
	b.Helper()
	data, err := os.ReadFile("../format/freeswitch/testdata/" + name)
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

func BenchmarkAcceptOneEvent(b *testing.B) {
	line, _, _ := strings.Cut(sample(b, "simple.jsonl"), "\n")
	benchmarkAccept(b, "svc.cc", "application/json", line, 1)
}

func BenchmarkAcceptNDJSON(b *testing.B) {
	body := strings.Repeat(sample(b, "simple.jsonl"), 10)
	benchmarkAccept(b, "svc.cc", "application/x-ndjson", body, bytes.Count([]byte(body), []byte("\n")))
}

func BenchmarkAcceptPlain(b *testing.B) {
	benchmarkAccept(b, "freeswitch.event", "text/event-plain", sample(b, "simple.esl.txt"), 43)
}

func BenchmarkSplitNDJSON(b *testing.B) {
	body := []byte(strings.Repeat(sample(b, "simple.jsonl"), 10))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := split.NDJSON(body, split.Sink{Take: func([]byte, int) error { return nil }}); err != nil {
			b.Fatal(err)
		}
	}
}

// discard is a Kafka that is always ready.
type discard struct{}

func (discard) Produce(context.Context, ...kafka.Record) error { return nil }

// anyAccount lets every caller name every account.
type anyAccount struct{}

func (anyAccount) MayIngestFor(*identity.Principal, string) bool { return true }
