package freeswitch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

const eventsPerRound = 1000 // a round is one iteration of a benchmark

// benchStream returns the events of a round and the size of one: 3 KB.
func benchStream() (frames string, size int) {
	pad := strings.Repeat("x", 40)
	var stream strings.Builder
	for i := range eventsPerRound {
		body := strings.Builder{}
		fmt.Fprintf(&body,
			`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"838f3dac-d3c3-4d97-9935-831417f7a97d","Event-Date-Timestamp":"1795169706190966",`+
				`"Event-Sequence":"%d","Unique-ID":"e895fedc-3fa1-4984-81a7-%012d","Call-Direction":"inbound","Caller-Caller-ID-Number":"15551230001",`+
				`"Caller-Destination-Number":"5000","Caller-Context":"default","variable_domain_name":"acme.example.com"`,
			i+1, i)

		for n := 0; body.Len() < 3000; n++ {
			fmt.Fprintf(&body, `,"variable_sip_header_%d":"%s"`, n, pad)
		}

		body.WriteString("}")
		size = body.Len()
		stream.WriteString(frame(body.String()))
	}

	return stream.String(), size
}

// BenchmarkRead reads events of about 3 KB from a switch over a socket, with the
// account of each by its domain.
func BenchmarkRead(b *testing.B) {
	stream, size := benchStream()
	rounds := make(chan struct{}, 1)
	f := &fakeSwitch{play: func(p *peer) {
		for range rounds {
			if _, err := io.WriteString(p.Conn, stream); err != nil {
				return
			}
		}
	}}

	s := openSession(b, f.serve(b).newPlatform(b, feed.Config{}, domains{"acme.example.com": "acme"}))
	defer close(rounds)

	b.SetBytes(int64(size * eventsPerRound))
	b.ReportAllocs()
	for b.Loop() {
		rounds <- struct{}{}
		for _, e := range read(b, s, eventsPerRound) {
			if e.Account != "acme" {
				b.Fatalf("got %+v", e)
			}
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*eventsPerRound), "ns/event")
	b.ReportMetric(float64(b.N*eventsPerRound)/b.Elapsed().Seconds(), "events/s")
}

// countingKafka counts the records that it is given; when it is read it has none.
type countingKafka struct{ records atomic.Int64 }

func (k *countingKafka) Produce(_ context.Context, records ...kafka.Record) error {
	k.records.Add(int64(len(records)))
	return nil
}

func (k *countingKafka) Partitions(context.Context, string) (int, error) { return 0, nil }

func (k *countingKafka) Offsets(context.Context, string, int) (first, next int64, err error) {
	return 0, 0, nil
}

func (k *countingKafka) ScanCompacted(context.Context, string, int, int64, func(), func(*kafka.Record)) (int64, error) {
	return 0, nil
}

// BenchmarkFeed runs the whole feed: socket, spool on disk, and a Kafka that costs
// nothing. With -cpu 1 the figure includes the scripted switch.
func BenchmarkFeed(b *testing.B) {
	stream, size := benchStream()
	rounds := make(chan struct{}, 1)
	f := &fakeSwitch{play: func(p *peer) {
		for range rounds {
			if _, err := io.WriteString(p.Conn, stream); err != nil {
				return
			}
		}
	}}

	f.serve(b)
	db, err := sqldb.Open(b.Context(), sqldb.Config{Path: filepath.Join(b.TempDir(), "feeds.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()

	store, err := feed.NewStore(b.Context(), db)
	if err != nil {
		b.Fatal(err)
	}

	k := &countingKafka{}
	cfg := feed.Config{Name: "pbx", Kind: feed.KindFreeSWITCH, Address: f.address, Password: password, Redundancy: 1}
	service, err := feed.NewService(
		feed.ServiceConfig{Settings: feed.DefaultSettings(), Feeds: []feed.Config{cfg}, DataDir: b.TempDir(),
			Node: "a"}, feed.ServiceDeps{
			Store: store, Directory: domains{"acme.example.com": "acme"}, Platform: New,
			Producer: k, LogReader: k, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		})
	if err != nil {
		b.Fatal(err)
	}

	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = service.Run(ctx) // nil
	}()
	defer func() { close(rounds); stop(); <-done }()

	want := int64(0)
	b.SetBytes(int64(size * eventsPerRound))
	b.ReportAllocs()

	for b.Loop() {
		rounds <- struct{}{}
		for want += eventsPerRound; k.records.Load() < want; {
			time.Sleep(100 * time.Microsecond)
		}
	}

	b.ReportMetric(float64(b.N*eventsPerRound)/b.Elapsed().Seconds(), "events/s")
}
