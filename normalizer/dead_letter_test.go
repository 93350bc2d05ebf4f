package normalizer

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// A topic with a smaller limit than the configured one costs only the record that is
// too large for it.
func TestARecordItsTopicRefusesIsADeadLetterAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.OnProduce = func(records []kafka.Record) (int, error) {
			size := 0
			for _, r := range records {
				size += len(r.Value)
			}

			if size > 2000 {
				return 0, fault.New(fault.KindTooLarge, "too large")
			}

			return len(records), nil
		}

		for i := range 20 {
			r := rawEvent(0, time.Now(), "acme")
			if i == 7 {
				r.Value = bytes.Replace(r.Value, []byte(`"acme"`), []byte(`"acme","x":"`+strings.Repeat("y", 2000)+`"`),
					1)
			}
			k.Append(r)
		}

		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		runUntilIdle(n)
		if at := recordOffsets(t, k.All(event.TopicEvents, 0)); len(at) != 19 {
			t.Errorf("positions %v", at)
		}

		dead := k.All(event.TopicDead, 0)
		if len(dead) != 1 || string(dead[0].Header(event.HeaderErrorKind)) != string(TooLarge) ||
			string(dead[0].Header(event.HeaderOrigOffset)) != "7" || dead[0].Value != nil {
			t.Errorf("dead letters %v", dead)
		}
		if next, _ := k.Progress(event.TopicRaw, 0).Committed(); next != 20 {
			t.Errorf("committed %d", next)
		}
		if got := testutil.ToFloat64(n.metrics.dead.WithLabelValues(event.TopicRaw, string(TooLarge))); got != 1 {
			t.Errorf("%v counted", got)
		}
	})
}

func TestAMessageOverTheLimitIsADeadLetter(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	b.maxRecordBytes = 2000
	big := rawEvent(3, testRecorded, "acme")
	big.Value = []byte(`{"Account-ID":"acme","x":"` + strings.Repeat("y", 1800) + `"}`)
	small := rawEvent(3, testRecorded, "acme")
	if err := b.fill(t.Context(), []kafka.Record{small, big, small}, 3); err != nil {
		t.Fatal(err)
	}
	if len(b.events) != 2 || len(b.deadLetters) != 1 ||
		string(b.deadLetters[0].Header(event.HeaderErrorKind)) != string(TooLarge) {
		t.Errorf("%d events, dead letters %v", len(b.events), b.deadLetters)
	}
}

func TestADeadLetterKeepsItsHeadersAndNotThoseOfAnEarlierLife(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	r := rawEvent(3, testRecorded, "nobody")
	r.Offset = 9
	r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderSource, Value: []byte("feed")},
		kafka.Header{Key: event.HeaderSettledOffsets, Value: []byte("0 1 2")},
		kafka.Header{Key: event.HeaderSettledOutcome, Value: []byte("discarded")},
		kafka.Header{Key: event.HeaderErrorKind, Value: []byte("old")},
		kafka.Header{Key: event.HeaderOrigOffset, Value: []byte("1")})

	if err := b.fill(t.Context(), []kafka.Record{r}, 1); err != nil {
		t.Fatal(err)
	}

	var got []string
	for _, h := range b.deadLetters[0].Headers {
		got = append(got, h.Key+"="+string(h.Value))
	}

	want := "format=svc.cc source=feed error_kind=unknown_account error=it names an account that does not exist" +
		" original_topic=cc.raw original_partition=3 original_offset=9"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

func TestWithoutAnyAccountARecordIsADeadLetter(t *testing.T) {
	for source, want := range map[string]format.Kind{"apikey:1": NoAccount, "feed:pbx": UnknownAccount} {
		b := testBatch(event.TopicRaw, 3)
		r := rawEvent(3, testRecorded, "acme")
		r.Key, r.Value = nil, []byte(`{"Type":"AGENT_LOGIN"}`)
		r.Headers = []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte("svc.cc")}, {Key: event.HeaderSource, Value: []byte(source)},
			{Key: event.HeaderAccountNames, Value: []byte("acme.example.com\nsupport")},
		}

		if err := b.fill(t.Context(), []kafka.Record{r}, 1); err != nil {
			t.Fatal(err)
		}
		if len(b.deadLetters) != 1 ||
			string(b.deadLetters[0].Header(event.HeaderErrorKind)) != string(want) {
			t.Fatalf("%s: dead letters %v, want %s", source, b.deadLetters, want)
		}
		if names := b.deadLetters[0].Header(event.HeaderAccountNames); string(names) != "acme.example.com\nsupport" {
			t.Errorf("%s: the names are %q", source, names)
		}
	}
}
