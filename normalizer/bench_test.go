package normalizer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
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
		`"history":[` + strings.Repeat(
		`{"type":"agent","ext":"1001","event":"ring","email":"ann@example.com","first_name":"Ann","last_name":"Example"},`,
		3) +
		`{"type":"agent","ext":"1002","event":"answer","email":"bo@example.com","first_name":"Bo","last_name":"Example"}]}`)
}

// benchRecord returns a golden record of the format, the first with all the words.
func benchRecord(b *testing.B, format string, words ...string) []byte {
	b.Helper()
	if format == "svc.cc" && len(words) == 0 {
		return oneKB()
	}

	for _, name := range []string{"captured", "c2c-nobowout", "queue-answered", "records"} {
		paths, _ := filepath.Glob("../format/*/testdata/" + format + "/" + name + ".in.jsonl")
		if len(paths) != 1 {
			continue
		}

		in, err := os.ReadFile(paths[0])
		if err != nil {
			b.Fatal(err)
		}

		for line := range bytes.Lines(in) {
			missing := func(word string) bool { return !bytes.Contains(line, []byte(word)) }
			if !slices.ContainsFunc(words, missing) {
				return bytes.TrimSuffix(line, []byte("\n"))
			}
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

	for name, words := range map[string][]string{
		"freeswitch.event/channel":     {"freeswitch.event", `"CHANNEL_ANSWER"`},
		"freeswitch.callcenter/call":   {"freeswitch.callcenter", `"bridge-agent-start"`},
		"freeswitch.callcenter/member": {"freeswitch.callcenter", `"agent-offering"`},
		"asterisk.ami/AgentConnect":    {"asterisk.ami", `"AgentConnect"`},
	} {
		if _, ok := registry.Lookup(words[0]); !ok {
			continue
		}

		value := benchRecord(b, words[0], words[1:]...)
		b.Run(fmt.Sprintf("%s/%dB", name, len(value)), func(b *testing.B) {
			benchmarkBatch(b, event.TopicRaw, []kafka.Header{{Key: event.HeaderFormat, Value: []byte(words[0])}}, value)
		})
	}

	b.Run("states", benchmarkStates)
	b.Run("recognised/svc.cc", func(b *testing.B) { benchmarkBatch(b, event.TopicRaw, nil, oneKB()) })
	b.Run("recognised/kazoo.acdc",
		func(b *testing.B) { benchmarkBatch(b, event.TopicRaw, nil, benchRecord(b, "kazoo.acdc")) })
}

// benchEvents returns the events of calls that enter a queue, are offered to an agent,
// answered and ended: every one changes the call, three of four an agent.
func benchEvents(n int) [][]byte {
	values := make([][]byte, n)
	for i := range values {
		event := []string{"entered", "offered", "answered", "hangup"}[i/50%4]
		values[i] = fmt.Appendf(nil,
			`{"Account-ID":"acme","Queue-ID":"q","Type":"svc_cc_queue_on_call_event","CDR":{"Call-ID":"%08x-1c37-4f0e-8a43-0e7f1f5a7b1c","Event":"%s"},"Agent-ID":"%d",`+
				`"history":[`+strings.Repeat(
				`{"type":"agent","ext":"1001","event":"ring","email":"ann@example.com","first_name":"Ann"},`, 8)+`{}]}`,
			i%50+i/200*50, event, i%50+i/200%10*50)
	}

	return values
}

func benchmarkStates(b *testing.B) {
	values := benchEvents(20_000)
	w, at := testBatch(event.TopicRaw, 3), 0
	w.partitionState = state.NewPartition()
	records := make([]kafka.Record, 200)
	b.ReportAllocs()
	left, written := 0, []byte(nil)

	for b.Loop() {
		if left == 0 {
			w.partitionState.Commit(func(c state.Change) { written = c.Value.Append(written[:0]) })
			for i := range records {
				records[i] = kafka.Record{Topic: event.TopicRaw, Partition: 3, Offset: int64(i), Time: testRecorded,
					Key: []byte("acme"), Value: values[at%len(values)],
					Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("svc.cc")}}}
				at++
			}

			w.reset(w.lastID)
			if err := w.fill(b.Context(), records, len(records)); err != nil || len(w.deadLetters) > 0 {
				b.Fatal(err, len(w.deadLetters))
			}

			left = w.rawRecords
		}

		left--
	}
}

func benchmarkBatch(b *testing.B, topic string, headers []kafka.Header, value []byte) {
	const size = 200
	w := testBatch(topic, 3)
	if topic == event.TopicRaw {
		w.partitionState = state.NewPartition()
	}

	records := make([]kafka.Record, size)
	for i := range records {
		records[i] = kafka.Record{Topic: topic, Partition: 3, Offset: int64(i), Time: recordedAt(topic),
			Key: []byte("acme"), Value: value, Headers: headers}
	}

	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	left, written := 0, []byte(nil)

	for b.Loop() {
		if left == 0 {
			if w.partitionState != nil {
				w.partitionState.Commit(func(c state.Change) { written = c.Value.Append(written[:0]) })
			}

			w.reset(w.lastID)
			if err := w.fill(b.Context(), records, size); err != nil || len(w.deadLetters) > 0 {
				b.Fatal(err, len(w.deadLetters))
			}

			left = w.rawRecords
		}

		left--
	}
}
