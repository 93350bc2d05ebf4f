package normalizer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
)

// oneKB returns an svc.cc event of about a kilobyte.
func oneKB() []byte {
	return []byte(`{"Account-ID":"acme","Queue-ID":"b3d8d2a1c7f04c5f9f8c1f5f0d2f7a11","Type":"svc_cc_queue_on_call_event",` +
		`"CDR":{"channel":{"Conference-Channel-Vars":{"Energy-Level":300,"Member-Ghost":false,"Member-Type":"moderator","Member-ID":17},` +
		`"Custom-Channel-Vars":{"Account-ID":"acme","Bridge-ID":"8f2b1d9c-2f1e-4c7b-9a56-1f6a0e9f1c11"}},` +
		`"Call-ID":"5c5a2f60-1c37-4f0e-8a43-0e7f1f5a7b1c","Conference-ID":"support-42","Event":"add-member"},` +
		`"customer_info":{"customer_callerid_name":"Ann Example","customer_callerid_number":"+15551230001","customer_uuid":"0c8a4c0e-90f5-4a3b-8c54-3b7d25f2d6f7"},` +
		`"history":[` + strings.Repeat(`{"type":"agent","ext":"1001","event":"ring","email":"ann@example.com","first_name":"Ann","last_name":"Example"},`, 3) +
		`{"type":"agent","ext":"1002","event":"answer","email":"bo@example.com","first_name":"Bo","last_name":"Example"}]}`)
}

// inputs returns the good records of a format's golden folder, largest first
// file.
func benchRecord(b *testing.B, format string) []byte {
	b.Helper()
	if format == "svc.cc" {
		return oneKB()
	}
	for _, name := range []string{"captured", "c2c-nobowout", "records"} {
		paths, _ := filepath.Glob("../format/*/testdata/" + format + "/" + name + ".in.jsonl")
		if len(paths) == 1 {
			in, err := os.ReadFile(paths[0])
			if err != nil {
				b.Fatal(err)
			}
			line, _, _ := bytes.Cut(in, []byte("\n"))
			return line
		}
	}
	b.Fatal("no record")
	return nil
}

// What a record costs between a read and a produce, batch and headers included.
func BenchmarkNormalize(b *testing.B) {
	for _, f := range registry.Formats() {
		value := benchRecord(b, f.Name)
		b.Run(fmt.Sprintf("%s/%dB", f.Name, len(value)), func(b *testing.B) {
			benchmarkBatch(b, f.Topic, []kafka.Header{{Key: event.HeaderFormat, Value: []byte(f.Name)}}, value)
		})
	}
	b.Run("recognised/svc.cc", func(b *testing.B) { benchmarkBatch(b, event.TopicRaw, nil, oneKB()) })
	b.Run("recognised/kazoo.acdc", func(b *testing.B) { benchmarkBatch(b, event.TopicRaw, nil, benchRecord(b, "kazoo.acdc")) })
}

func benchmarkBatch(b *testing.B, topic string, headers []kafka.Header, value []byte) {
	const size = 200
	w := testBatch(topic, 3)
	records := make([]kafka.Record, size)
	for i := range records {
		records[i] = kafka.Record{Topic: topic, Partition: 3, Offset: int64(i), Time: testRecorded, Key: []byte("acme"), Value: value, Headers: headers}
	}
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	left := 0
	for b.Loop() {
		if left == 0 {
			w.reset(w.last)
			if err := w.fill(b.Context(), records, size); err != nil || len(w.dead) > 0 {
				b.Fatal(err, len(w.dead))
			}
			left = w.taken
		}
		left--
	}
}
