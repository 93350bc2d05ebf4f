package stats

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/stats"
	"trunkline/stats/figures"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
}

func newProgram() (p *cli.Program) { return &cli.Program{Err: os.Stderr} }

func TestRebuildWithoutEvents(t *testing.T) {
	w := newRunner(t)
	w.Serve()
	w.MustFail(cli.ExitFailed, "no events", "stats", "rebuild")
	w.MustFail(cli.ExitUsage, "--from is", "stats", "rebuild", "--from", "yesterday")
}

func TestRebuildBesideAServerGivesTheSameReport(t *testing.T) {
	w := newRunner(t)
	s := w.Serve()
	cluster, closeKafka, err := backend.OpenSharedKafka(t.Context(), s, newProgram().ToolLog())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeKafka() }()

	producer := cluster.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = producer.Close(t.Context()) }()

	const calls = 50
	var records []kafka.Record
	now, last := time.Now(), event.ID(0)

	for i := range calls {
		last = event.NextID(last, now.UnixMilli(), 5)
		m := event.Message{ID: last, Type: "AGENT_STATUS_CHANGE", AccountID: "demo", Timestamp: now.Unix(),
			Data: []byte(`{}`), Metadata: event.Metadata{
				Source: "test", OriginalFormat: "test",
				Facts: event.Facts{Name: event.NameQueueCallEntered, QueueID: "sales", CallID: fmt.Sprint("c", i),
					TimestampMS: now.UnixMilli()}}}
		records = append(records,
			kafka.Record{Topic: event.TopicEvents, Partition: 5, Key: []byte("demo"), Value: m.Append(nil),
				Time:    last.Time(),
				Headers: []kafka.Header{{Key: event.HeaderName, Value: []byte(event.NameQueueCallEntered)}}})
	}

	if err := producer.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}

	db, err := backend.OpenDatabase(t.Context(), s, newProgram().ToolLog())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	store, err := figures.New(t.Context(), 0, db, prometheus.NewRegistry(), newProgram().ToolLog())
	if err != nil {
		t.Fatal(err)
	}

	offered := func() (n int64) {
		rows, err := store.QueuesSince(t.Context(), []string{"demo"}, 0)
		if err != nil {
			t.Fatal(err)
		}

		for _, r := range rows {
			n += r.Figure("offered")
		}

		return n
	}

	awaitOffered := func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); offered() != calls; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d calls offered, want %d", offered(), calls)
			}
		}
	}

	awaitOffered()
	if _, err := db.ExecContext(t.Context(), `UPDATE figures_queues SET offered = 7`); err != nil {
		t.Fatal(err)
	}
	if out := w.MustRun("stats", "rebuild", "--from",
		"7d"); out != fmt.Sprintf("figures rebuilt from %d events of 1 partitions\n", calls) {
		t.Errorf("it prints %q", out)
	}

	awaitOffered()
	if err := store.Rebuilds().Create(t.Context(),
		[]stats.Rebuild{{ID: "other", Partition: 99, From: 900}}); err != nil {
		t.Fatal(err)
	}

	w.MustFail(cli.ExitFailed, "1970-01-01T00:15:00Z", "stats", "rebuild", "--from", "1d")
}

// trimmedLog is a log whose first records were deleted.
type trimmedLog struct{ kafka.Log }

func (trimmedLog) Offsets(context.Context, string, int) (first, next int64, err error) {
	return 7, 9, nil
}

func (trimmedLog) Read(kafka.ReaderConfig) kafka.Source { return oneEvent{} }

var logBegins = time.Date(2026, 11, 20, 9, 7, 0, 0, time.UTC)

type oneEvent struct{ kafka.Source }

func (oneEvent) Read(context.Context) ([]kafka.Record, error) {
	m := event.Message{ID: event.FirstID(logBegins, 0), Type: "CALL_ENDED", AccountID: "demo",
		Timestamp: logBegins.Unix(), Data: []byte(`{}`)}
	return []kafka.Record{{Value: m.Append(nil)}}, nil
}

func (oneEvent) Close() {}

func TestATimeBeforeTheLogsBeginningIsRefused(t *testing.T) {
	earliest := time.Date(2026, 11, 21, 9, 15, 0, 0, time.UTC)
	if _, err := planRebuilds(t.Context(), trimmedLog{}, 2, earliest.Add(-time.Second)); err == nil ||
		!strings.Contains(err.Error(), "give --from 2026-11-21T09:15:00Z or later") {
		t.Errorf("%v", err)
	}

	for _, from := range []time.Time{earliest, {}} {
		wanted, err := planRebuilds(t.Context(), trimmedLog{}, 2, from)
		if err != nil || len(wanted) != 2 || wanted[1].Partition != 1 || wanted[1].From != earliest.Unix() ||
			wanted[1].Total != 2 {
			t.Errorf("%+v, %v", wanted, err)
		}
	}
}
