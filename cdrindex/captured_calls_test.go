package cdrindex

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/normalizer"
)

type anyAccount struct{}

func (anyAccount) Exists(context.Context, string) (bool, error) { return true, nil }

// startPipeline runs a normalizer and an indexer, and returns a function that posts raw
// call records like an ingest.
func startPipeline(t *testing.T, x *Index) (post func(account, format string, value []byte)) {
	c := kafkatest.OpenEmbedded(t, 4)
	producer := c.NewProducer(kafka.ProducerConfig{})
	n, err := normalizer.New(normalizer.Config{Topics: []string{event.TopicCDRRaw}},
		normalizer.Deps{LogReader: kafka.NewLog(c), Producer: producer, Accounts: anyAccount{}},
		prometheus.NewRegistry(), discardLog())
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	})

	stop := startIndexer(t, x, kafka.NewLog(c))
	t.Cleanup(func() {
		stop()
		cancel()
		running.Wait()
		_ = producer.Close(context.Background())
	})

	return func(account, format string, value []byte) {
		t.Helper()
		err := producer.Produce(t.Context(), kafka.Record{
			Topic: event.TopicCDRRaw, Partition: kafka.AnyPartition, Key: []byte(account), Value: value,
			Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte(format)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readCapture are the call records that FreeSWITCH wrote (shared/samples).
func readCapture(t *testing.T, scene string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(
		filepath.Join("..", "format", "freeswitch", "testdata", "freeswitch.json_cdr", scene+".in.jsonl"))
	if err != nil {
		t.Fatal(err)
	}

	return slices.Collect(func(yield func([]byte) bool) {
		for line := range bytes.Lines(text) {
			if !yield(bytes.TrimSpace(line)) {
				return
			}
		}
	})
}

// The captured click to call, from FreeSWITCH's own records to every answer.
func TestACapturedCallIsFound(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		post := startPipeline(t, x)
		const (
			oc          = "oc-38935054-8f29-47aa-959d-5d073dec3c8e"
			destination = "04673e0b-4f5f-43dc-977a-23a07ee336c0"
			placed      = 1795169718
		)

		for _, scene := range []string{"c2c-nobowout", "callcenter", "simple"} {
			for _, record := range readCapture(t, scene) {
				post("acme", "freeswitch.json_cdr", record)
				post("acme", "freeswitch.json_cdr", record) // a retry of mod_json_cdr
			}
		}

		post("acme", "freeswitch.json_cdr", []byte(`{"variables":{}}`))
		post("zeta", "svc.cdr", []byte(`{"call_id":"z","timestamp":1795169718}`))
		all := inRange("acme", placed-60, placed+60)
		waitUntil(t, "the last record's row",
			func() bool { return len(listCallIDs(t, x, inRange("zeta", 0, endOfTime))) == 1 })
		waitUntil(t, "all rows", func() bool { return len(listCallIDs(t, x, all)) == 8 })

		row, err := x.Find(t.Context(), "acme", placed-60, placed+60, oc, nil)
		if err != nil || row.CallID != destination || row.To != "1002" || row.AnsweredTime == 0 ||
			row.DurationSeconds == nil {
			t.Errorf("found %+v, %v", row, err)
		}

		_, err = x.Find(t.Context(), "zeta", placed-60, placed+60, oc, nil)
		wantKind(t, err, fault.KindNotFound)
		legs := all
		legs.InteractionID = row.InteractionID
		checkIDs(t, listCallIDs(t, x, legs), "c91d5c98-2686-43fd-8edd-5e54801af321",
			"93505f3f-3700-434c-807b-bb6ecead4738",
			destination, "0079da6c-35c4-4394-bd1c-205a1dd7efa9")
		var out bytes.Buffer
		if _, err := x.WriteCSV(t.Context(), all, &out); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), ","+oc+",outbound,") +
			strings.Count(out.String(), ","+oc+",inbound,"); n != 3 {
			t.Errorf("the CSV has %d legs with the origination call id:\n%s", n, out.String())
		}

		// A record is there within 2 s of being in Kafka.
		fastest := time.Hour
		for n := 2; n < 10 && fastest > 2*time.Second; n++ { // a slow machine may be late sometimes
			began := time.Now()
			post("zeta", "svc.cdr", fmt.Appendf(nil, `{"call_id":"z%d","timestamp":1795169719}`, n))
			waitUntil(t, "another row",
				func() bool { return len(listCallIDs(t, x, inRange("zeta", 0, endOfTime))) == n })
			fastest = min(fastest, time.Since(began))
		}

		if fastest > 2*time.Second {
			t.Errorf("a row took %s at best", fastest)
		}
	})
}

// The captured call, moved to the edge of a month, is found from either.
func TestACapturedCallAtAMonthsEdge(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		post := startPipeline(t, x)
		for _, record := range readCapture(t, "c2c-nobowout") {
			text := strings.NewReplacer("1795169718", "1793491199", "1795169721", "1793491202", "1795169716",
				"1793491198",
				"1795169717", "1793491198", "1795169719", "1793491200", "1795169720",
				"1793491201").Replace(string(record))
			post("acme", "freeswitch.json_cdr", []byte(text))
		}

		october := inRange("acme", november-31*24*3600, november-1)
		next := inRange("acme", november, december-1)
		for _, f := range []Filter{october, next} {
			waitUntil(t, "all legs", func() bool { return len(listCallIDs(t, x, f)) == 4 })
			row, err := x.Find(t.Context(), "acme", f.Start, f.End, "oc-38935054-8f29-47aa-959d-5d073dec3c8e", nil)
			if err != nil || row.CallID != "04673e0b-4f5f-43dc-977a-23a07ee336c0" {
				t.Errorf("found %+v, %v", row, err)
			}
		}
	})
}
