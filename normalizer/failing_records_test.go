package normalizer

import (
	"context"
	"errors"
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
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
)

// An invalid account id is unknown, without a query: PostgreSQL
// refuses some of them as text, and then no answer would ever come.
func TestAnImpossibleAccountIDIsUnknownWithoutAsking(t *testing.T) {
	for _, id := range []string{"a\x00b", "\xff\xfe", "acme\n", "a b", "ä", "a/b", strings.Repeat("a", 65)} {
		t.Run(fmt.Sprintf("%q", id), func(t *testing.T) {
			b := testBatch(event.TopicRaw, 3)
			b.accounts = accountsFunc(func(asked string) (bool, error) {
				return false, fault.Internal(errors.New("invalid byte sequence"), "asked about "+asked)
			})
			inKey := rawEvent(3, testRecorded, "")
			inKey.Key, inKey.Value = []byte(id), []byte(`{"Type":"svc_cc_queue_on_call_event"}`)
			records := []kafka.Record{inKey}

			if id == "a\x00b" {
				inRecord := rawEvent(3, testRecorded, "")
				inRecord.Value = []byte(`{"Account-ID":"a\u0000b","Type":"svc_cc_queue_on_call_event"}`)
				records = append(records, inRecord)
			}

			if err := b.fill(t.Context(), records, len(records)); err != nil {
				t.Fatal(err)
			}
			if len(b.deadLetters) != len(records) {
				t.Fatalf("%d dead letters of %d records", len(b.deadLetters), len(records))
			}

			for i := range b.deadLetters {
				if kind := string(b.deadLetters[i].Header(event.HeaderErrorKind)); kind != string(UnknownAccount) {
					t.Errorf("kind %s", kind)
				}
			}
		})
	}
}

// A record that cannot be processed holds back neither what came before it nor,
// for long, what comes after it.
func TestARecordThatKeepsFailingIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		asked := 0
		accounts := accountsFunc(func(id string) (bool, error) {
			if id == "poison" {
				asked++
				return false, fault.Internal(errors.New("invalid byte sequence"), "looking up an account failed")
			}
			return true, nil
		})

		for _, id := range []string{"acme", "acme", "poison", "acme"} {
			k.Append(rawEvent(0, time.Now(), id))
		}

		n := newTestNormalizer(t, k, accounts, event.TopicRaw)
		stop := start(n)
		defer stop()

		time.Sleep(10 * time.Millisecond)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1]" {
			t.Errorf("positions before the bad record: %v", at)
		}

		time.Sleep(time.Minute)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1 3]" {
			t.Errorf("positions: %v", at)
		}

		dead := k.All(event.TopicDead, 0)
		if len(dead) != 1 || string(dead[0].Header(event.HeaderErrorKind)) != string(Internal) ||
			string(dead[0].Header(event.HeaderOrigOffset)) != "2" {
			t.Errorf("dead letters %v", dead)
		}
		if asked != maxFailures+1 { // once more behind the records before it
			t.Errorf("tried %d times", asked)
		}
		if got := testutil.ToFloat64(n.metrics.dead.WithLabelValues(event.TopicRaw, string(Internal))); got != 1 {
			t.Errorf("%v counted", got)
		}
	})
}

// What fails only for a while costs no record.
func TestARecordThatFailsAFewTimesIsNormalized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		asked := 0
		accounts := accountsFunc(func(string) (bool, error) {
			asked++
			if asked < maxFailures {
				return false, fault.Internal(errors.New("out of shared memory"), "looking up an account failed")
			}
			return true, nil
		})

		k.Append(rawEvent(0, time.Now(), "acme"))
		runUntilIdle(newTestNormalizer(t, k, accounts, event.TopicRaw))
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0]" ||
			len(k.All(event.TopicDead, 0)) != 0 {
			t.Errorf("positions %v, %d dead letters", at, len(k.All(event.TopicDead, 0)))
		}
	})
}

// A normalizer that is stopped while a record fails writes no dead letter.
func TestStoppingIsNoFailureOfARecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		n := newTestNormalizer(t, k, blockingAccounts{}, event.TopicRaw)
		k.Append(rawEvent(0, time.Now(), "acme"))

		for range maxFailures + 1 {
			stop := start(n)
			time.Sleep(time.Second)
			stop()
		}

		if dead := k.All(event.TopicDead, 0); len(dead) != 0 {
			t.Errorf("dead letters %v", dead)
		}
	})
}

// blockingAccounts returns when the caller's context ends.
type blockingAccounts struct{}

func (blockingAccounts) Exists(ctx context.Context, _ string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// A compressed record that a reader does not unpack is a dead letter, and those after it
// become messages.
func TestARecordThatIsTooLargeToUnpackIsADeadLetter(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	large := kafka.Record{Topic: event.TopicRaw, Partition: 3, Time: testRecorded, Key: []byte("acme"),
		Oversized: 17 << 20}
	next := eventRecord(event.AgentLogin, `{"agent_id":"1"}`)
	next.Time, next.Offset = testRecorded, 1

	if err := b.fill(t.Context(), []kafka.Record{large, next}, 2); err != nil || len(b.deadLetters) != 1 ||
		len(b.events) != 1 {
		t.Fatal(err, len(b.deadLetters), len(b.events))
	}
	if got := string(b.deadLetters[0].Header(event.HeaderErrorKind)); got != string(TooLarge) ||
		string(b.deadLetters[0].Key) != "acme" {
		t.Errorf("a dead letter of kind %s", got)
	}
}

func TestAPanicCostsOneRecord(t *testing.T) {
	svc, _ := registry.Lookup("svc.cc")
	broken := *svc
	broken.DecodeEvent = func(*format.Fields) (format.Event, error) { panic("a fault of ours") }
	b := testBatch(event.TopicRaw, 3)
	reg := prometheus.NewRegistry()
	b.panics = panics.New(reg, slog.New(slog.DiscardHandler))

	r := *conversions[event.TopicRaw]
	normalize := r.normalize
	r.normalize = func(ctx context.Context, b *batch, raw *kafka.Record, id event.ID) error {
		if raw.Offset == 1 {
			_, err := broken.ReadEvent(raw.Value, &b.scratch.fields)
			return err
		}
		return normalize(ctx, b, raw, id)
	}

	b.conversion = &r
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
