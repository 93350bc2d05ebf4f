package normalizer

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
)

var acmeOnly = accountsFunc(func(id string) (bool, error) { return id == "acme", nil })

// runUntilIdle runs n until nothing more happens.
func runUntilIdle(n *Normalizer) {
	stop := start(n)
	time.Sleep(time.Minute)
	stop()
}

func recordOffsets(t *testing.T, records []kafka.Record) (at []int64) {
	t.Helper()
	for _, r := range records {
		p, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p.Offset)
	}
	return at
}

func TestRecordsThatRetentionTookAreSaidAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.Delete(event.TopicRaw, 0, 100)
		k.Progress(event.TopicRaw, 0).Commit(90)
		k.Append(rawEvent(0, time.Now(), "acme"))
		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		runUntilIdle(n)

		if at := recordOffsets(t, k.All(event.TopicEvents, 0)); len(at) != 1 || at[0] != 100 {
			t.Errorf("positions %v", at)
		}
		if lost := testutil.ToFloat64(n.metrics.lost.WithLabelValues(event.TopicRaw)); lost != 10 {
			t.Errorf("%v lost, want 10", lost)
		}
	})
}

func TestDamagedRecordsAreSkippedSaidAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.MaxRead = 1
		k.Damage = &kafka.GapError{Topic: event.TopicRaw, Kind: kafka.GapDamaged, Offset: 2, Resume: 4,
			Reason: "checksum"}

		for range 6 {
			k.Append(rawEvent(0, time.Now(), "acme"))
		}

		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		runUntilIdle(n)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1 4 5]" {
			t.Errorf("positions %v", at)
		}
		if lost := testutil.ToFloat64(n.metrics.lost.WithLabelValues(event.TopicRaw)); lost != 2 {
			t.Errorf("%v lost, want 2", lost)
		}
	})
}

func TestABatchIsOneProduceRequest(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	r := rawEvent(3, testRecorded, "acme")
	r.Value = []byte(`{"Account-ID":"acme","x":"` + strings.Repeat("y", 400_000) + `"}`)
	records := []kafka.Record{r, r, r, r}
	if err := b.fill(t.Context(), records, len(records)); err != nil {
		t.Fatal(err)
	}
	if b.rawRecords != 2 || len(b.events) != 2 || b.size > maxRequestBytes {
		t.Errorf("%d records in %d bytes", b.rawRecords, b.size)
	}

	huge := r
	huge.Value = []byte(`{"Account-ID":"acme","x":"` + strings.Repeat("y", 1_000_000) + `"}`)
	b.reset(0)

	if err := b.fill(t.Context(), []kafka.Record{huge, r}, 2); err != nil || b.rawRecords != 1 || len(b.events) != 1 {
		t.Errorf("a record larger than a request goes alone: %d taken, %v", b.rawRecords, err)
	}
}

func TestAPanicCostsOneRecord(t *testing.T) {
	svc, _ := registry.Lookup("svc.cc")
	broken := *svc
	broken.DecodeEvent = func(*format.Fields) (format.Event, error) { panic("a fault of ours") }
	b := testBatch(event.TopicRaw, 3)
	reg := prometheus.NewRegistry()
	b.panics = panics.New(reg, slog.New(slog.DiscardHandler))

	r := *routes[event.TopicRaw]
	normalize := r.normalize
	r.normalize = func(ctx context.Context, b *batch, raw *kafka.Record, id event.ID) error {
		if raw.Offset == 1 {
			_, err := broken.ReadEvent(raw.Value, &b.scratch.fields)
			return err
		}
		return normalize(ctx, b, raw, id)
	}

	b.route = &r
	records := []kafka.Record{rawEvent(3, testRecorded, "acme"), rawEvent(3, testRecorded, "acme"),
		rawEvent(3, testRecorded, "acme")}
	records[1].Offset, records[2].Offset = 1, 2

	if err := b.fill(t.Context(), records, 3); err != nil {
		t.Fatal(err)
	}
	if len(b.events) != 2 || len(b.deadLetters) != 1 ||
		string(b.deadLetters[0].Header(event.HeaderErrorKind)) != string(Internal) {
		t.Errorf("%d events, dead letters %v", len(b.events), b.deadLetters)
	}

	want := `
# HELP trunkline_recovered_panics_total Panics recovered, by place; each ended one call, session or message.
# TYPE trunkline_recovered_panics_total counter
trunkline_recovered_panics_total{where="normalizer_record"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "trunkline_recovered_panics_total"); err != nil {
		t.Error(err)
	}
}

// While the account store is unavailable, the records before it are written
// and nothing is skipped.
func TestAPartitionWaitsForTheAccountStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		back := time.Now().Add(20 * time.Second)
		accounts := accountsFunc(func(id string) (bool, error) {
			if id == "acme" {
				return true, nil
			}
			if time.Now().Before(back) {
				return false, errAway
			}

			return true, nil
		})

		for _, id := range []string{"acme", "acme", "new", "acme"} {
			k.Append(rawEvent(0, time.Now(), id))
		}

		k.MaxRead = 1000
		stop := start(newTestNormalizer(t, k, accounts, event.TopicRaw))
		defer stop()

		time.Sleep(10 * time.Second)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1]" {
			t.Errorf("before: positions %v", at)
		}

		time.Sleep(20 * time.Second)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1 2 3]" {
			t.Errorf("after: positions %v", at)
		}
	})
}

// A stranger's record at the end of the topic stops nothing.
func TestAPartitionStartsBehindAForeignRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.Append(kafka.Record{Topic: event.TopicEvents, Value: []byte("hello")})
		k.Append(rawEvent(0, time.Now(), "acme"))
		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		if got := k.All(event.TopicEvents, 0); len(got) != 2 || string(got[1].Header(event.HeaderPosition)) != "0:0" {
			t.Errorf("got %v", got)
		}
	})
}

func TestCallRecordsTakeTheSameWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		now := time.Now()
		for i := range 5 {
			k.Append(kafka.Record{Topic: event.TopicCDRRaw, Time: now, Key: []byte("acme"),
				Value: fmt.Appendf(nil, `{"call_id":"c%d","timestamp":%d}`, i, now.Unix()-int64(i%2)*1e9)})
		}

		runUntilIdle(newTestNormalizer(t, k, acmeOnly))
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicCDR, 0))); at != "[0 2 4]" {
			t.Errorf("positions %v", at)
		}
		if dead := k.All(event.TopicDead, 0); len(dead) != 2 ||
			string(dead[0].Header(event.HeaderOrigTopic)) != event.TopicCDRRaw {
			t.Errorf("dead letters %v", dead)
		}

		k.Append(kafka.Record{Topic: event.TopicCDRRaw, Time: now, Key: []byte("acme"),
			Value: fmt.Appendf(nil, `{"call_id":"c5","timestamp":%d}`, now.Unix())})
		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicCDRRaw))

		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicCDR, 0))); at != "[0 2 4 5]" {
			t.Errorf("after a restart: positions %v", at)
		}
	})
}

func TestTraceAndSourceTravelOn(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	r := rawEvent(3, testRecorded, "acme")
	r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderSource, Value: []byte("feed \"1\"\n")},
		kafka.Header{Key: event.HeaderTrace, Value: []byte("00-abc")})

	if err := b.fill(t.Context(), []kafka.Record{r}, 1); err != nil {
		t.Fatal(err)
	}

	out := b.events[0]
	if string(out.Header(event.HeaderTrace)) != "00-abc" ||
		!bytes.Contains(out.Value, []byte(`"source":"feed \"1\"\n"`)) {
		t.Errorf("%s %v", out.Value, out.Headers)
	}
}

func TestAFormatOfAnotherTopicIsUnknown(t *testing.T) {
	for topic, name := range map[string]string{event.TopicRaw: "svc.cdr", event.TopicCDRRaw: "svc.cc"} {
		raw := kafka.Record{Topic: topic, Partition: 3, Time: testRecorded, Key: []byte("acme"), Value: []byte(`{}`),
			Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte(name)}}}
		got, err := NormalizeOne(t.Context(), raw, testRecorded, allAccounts{})
		if err != nil || string(got.Header(event.HeaderErrorKind)) != string(UnknownFormat) {
			t.Errorf("%s on %s: %s, %v", name, topic, got.Header(event.HeaderErrorKind), err)
		}
	}
}

func TestTheRulesOfAFeedDecideTheAccount(t *testing.T) {
	for name, c := range map[string]struct{ source, key, want string }{
		"a feed's key comes before the record": {"feed:pbx", "key-account", "key-account"},
		"a feed that knows none":               {"feed:pbx", "", "acme"},
		"a record of HTTP":                     {"apikey:feed:", "key-account", "acme"},
	} {
		t.Run(name, func(t *testing.T) {
			b := testBatch(event.TopicRaw, 3)
			r := rawEvent(3, testRecorded, "acme")
			r.Key = []byte(c.key)
			r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderSource, Value: []byte(c.source)})

			if err := b.fill(t.Context(), []kafka.Record{r}, 1); err != nil {
				t.Fatal(err)
			}
			if len(b.events) != 1 || string(b.events[0].Key) != c.want {
				t.Errorf("%d records, dead %v", len(b.events), b.deadLetters)
			}
		})
	}
}
