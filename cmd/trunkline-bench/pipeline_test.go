package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

// benchmarkPipeline runs pipeline on the data directory.
func benchmarkPipeline(w *clitest.Runner, ctx context.Context,
	args ...string) (report pipelineReport, code int, errs string) {
	w.T.Helper()
	code, out, errs := w.RunContext(ctx, append([]string{"pipeline", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &report); err != nil && out != "" {
		w.T.Fatalf("stdout %q, stderr %s", out, errs)
	}
	return report, code, errs
}

func TestBenchPipelineOnTheWholeProgram(t *testing.T) {
	t.Parallel()
	w := newRunner(t)
	s := w.Serve()
	r, code, errs := benchmarkPipeline(w, t.Context(), "--accounts", "5", "--rate", "300", "--batch", "4",
		"--call-records", "40", "--reports",
		"--warmup", "200ms", "--duration", "1500ms", "--server-pid", fmt.Sprint(os.Getpid()), "--metrics",
		"http://"+s.MetricsListen)
	if code != cli.ExitOK || r.CallRecords == nil || r.Reports == nil || r.Usage == nil || r.Interrupted {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}
	if r.Events.Lost != 0 || r.Events.Sent == 0 || r.Events.WholeRun.Records < r.Events.Sent ||
		r.Events.LatencyMS.P50 <= 0 || r.Events.AcknowledgedMS.P50 <= 0 {
		t.Errorf("events %+v", r.Events)
	}

	if len(r.Events.Partitions) < 2 || len(r.Events.Partitions) > 5 {
		t.Errorf("partitions %+v", r.Events.Partitions)
	}
	if r.CallRecords.Lost != 0 || r.CallRecords.WholeRun.Records == 0 || r.Reports.Found == 0 ||
		r.Reports.NotFound != 0 || r.Reports.FoundMS.P50 <= 0 {
		t.Errorf("call records %+v, reports %+v", r.CallRecords, r.Reports)
	}
	if r.Usage.CPUSeconds <= 0 || r.Usage.RSSBytesEnd <= 0 || !strings.Contains(errs, "events/s in") {
		t.Errorf("usage %+v, says %s", r.Usage, errs)
	}

	r, code, errs = benchmarkPipeline(w, t.Context(), "--accounts", "4", "--rate", "0", "--batch", "50", "--through",
		"kafka", "--warmup", "0", "--duration", "500ms")
	if code != cli.ExitOK || r.Events.WholeRun.Records < 200 || r.Events.Lost != 0 {
		t.Errorf("as fast as it goes: exits with %d: %+v\n%s", code, r, errs)
	}

	var accounts []struct{ ID string }
	w.MustJSON(&accounts, "account", "list", "--json")
	for _, a := range accounts {
		if strings.HasPrefix(a.ID, "bench-") {
			t.Errorf("left is %+v", a)
		}
	}
}

// fakeNormalizer normalizes in place of the server, on a broker of its own: it copies raw records to the
// event topic, changed by spoil.
type fakeNormalizer struct {
	cluster  *kafka.Cluster
	producer *kafka.Producer
	// records to write in place of the n-th; nil: the record itself
	spoil func(n uint64, r kafka.Record) []kafka.Record
	seen  atomic.Uint64
}

const fakePartitions = 2

// startFakeNormalizer starts a broker on the data directory, where bench finds it, and the normalizer on it.
func startFakeNormalizer(w *clitest.Runner, spoil func(n uint64, r kafka.Record) []kafka.Record) {
	w.T.Helper()
	s := settings.Default()
	s.DataDir = w.Dir
	cluster, closeKafka, err := backend.OpenKafka(w.T.Context(), s, nil, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		w.T.Fatal(err)
	}

	f := &fakeNormalizer{cluster: cluster, producer: cluster.NewProducer(kafka.ProducerConfig{}), spoil: spoil}

	ctx, stop := context.WithCancel(w.T.Context())
	var running sync.WaitGroup
	w.T.Cleanup(func() {
		stop()
		running.Wait()
		if err := errors.Join(f.producer.Close(context.Background()), closeKafka()); err != nil {
			w.T.Error(err)
		}
	})

	if err := cluster.EnsureTopics(ctx, topics.All(fakePartitions)); err != nil {
		w.T.Fatal(err)
	}

	for partition := range fakePartitions {
		running.Go(func() {
			if err := f.work(ctx, partition); ctx.Err() == nil {
				w.T.Error(err)
			}
		})
	}
}

func (f *fakeNormalizer) work(ctx context.Context, partition int) error {
	reader := f.cluster.NewReader(event.TopicRaw, partition, 0)
	defer reader.Close()

	for {
		records, err := reader.Read(ctx)
		if err != nil {
			return err
		}

		for i := range records {
			if err := f.pass(ctx, &records[i]); err != nil {
				return err
			}
		}
	}
}

func (f *fakeNormalizer) pass(ctx context.Context, raw *kafka.Record) error {
	at := event.Position{Partition: raw.Partition, Offset: raw.Offset}.String()
	made := kafka.Record{Topic: event.TopicEvents, Partition: raw.Partition, Key: raw.Key, Value: raw.Value,
		Headers: []kafka.Header{{Key: event.HeaderPosition, Value: []byte(at)}}}
	out := []kafka.Record{made}

	if f.spoil != nil && !bytes.Contains(raw.Value, []byte(".000000000000.")) { // but leave probes unchanged
		out = f.spoil(f.seen.Add(1), made)
	}
	if len(out) == 0 {
		return nil
	}

	return f.producer.Produce(ctx, out...)
}

var quickPipelineArgs = []string{"--through", "kafka", "--accounts", "3", "--rate", "400", "--batch", "1",
	"--duration", "400ms", "--warmup", "0", "--wait", "3s"}

func TestBenchPipelineFindsWhatIsSpoiled(t *testing.T) {
	t.Parallel()
	var held kafka.Record
	for name, c := range map[string]struct {
		spoil func(n uint64, r kafka.Record) []kafka.Record
		found func(r *flowReport) bool // the report has the fault
		code  int
	}{
		"lost": {func(n uint64, r kafka.Record) []kafka.Record {
			if n == 20 || n == 21 {
				return nil
			}
			return []kafka.Record{r}
		}, func(r *flowReport) bool { return r.Lost == 2 && r.WholeRun.Missing == 2 }, cli.ExitFailed},
		"dead letter": {func(n uint64, r kafka.Record) []kafka.Record {
			if n == 20 {
				r.Topic, r.Headers = event.TopicDead, []kafka.Header{
					{Key: event.HeaderOrigTopic, Value: []byte(event.TopicRaw)},
					{Key: event.HeaderErrorKind, Value: []byte("made_up")},
				}
			}

			return []kafka.Record{r}
		}, func(r *flowReport) bool { return r.Lost == 0 && r.DeadLetters["made_up"] == 1 }, cli.ExitFailed},
		"repeated": {func(n uint64, r kafka.Record) []kafka.Record {
			if n == 20 {
				return []kafka.Record{r, r}
			}
			return []kafka.Record{r}
		}, func(r *flowReport) bool { return r.Lost == 0 && r.WholeRun.Repeated == 1 && r.WholeRun.Duplicated == 0 },
			cli.ExitOK},
		"duplicated": {func(n uint64, r kafka.Record) []kafka.Record {
			if n == 20 {
				again := r
				again.Headers = nil
				return []kafka.Record{r, again}
			}
			return []kafka.Record{r}
		}, func(r *flowReport) bool { return r.Lost == 0 && r.WholeRun.Duplicated == 1 }, cli.ExitFailed},
		"disordered": {func(n uint64, r kafka.Record) []kafka.Record {
			switch n { // one account, so consecutive events are of one stream
			case 20:
				held = *r.Clone()
				return nil
			case 21:
				return []kafka.Record{r, held}
			}

			return []kafka.Record{r}
		}, func(r *flowReport) bool { return r.Lost == 0 && r.WholeRun.Disordered == 1 }, cli.ExitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRunner(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()

			startFakeNormalizer(w, func(n uint64, r kafka.Record) []kafka.Record {
				if n == 40 {
					stop()
				}
				return c.spoil(n, r)
			})

			args := append(slices.Clone(quickPipelineArgs), "--duration", "1h")
			if name == "disordered" {
				args = append(args, "--accounts", "1")
			}

			r, code, errs := benchmarkPipeline(w, ctx, args...)
			if code != c.code || !c.found(&r.Events) ||
				(code == cli.ExitFailed) != strings.Contains(errs, errPipelineFaults.Error()) {
				t.Errorf("exits with %d: %+v\n%s", code, r.Events, errs)
			}

			told := false
			for partition, p := range r.Events.Partitions {
				told = told || partition >= 0 && (p.Missing > 0 || p.Repeated+p.Duplicated+p.Disordered > 0)
			}

			if !told {
				t.Errorf("no partition in the report: %+v", r.Events.Partitions)
			}
		})
	}
}

func TestBenchPipelineEndsWithTheReportSoFar(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	w := newRunner(t)
	startFakeNormalizer(w, func(n uint64, r kafka.Record) []kafka.Record {
		if n == 100 {
			stop() // as Ctrl-C does
		}
		return []kafka.Record{r}
	})

	r, code, errs := benchmarkPipeline(w, ctx, append(slices.Clone(quickPipelineArgs), "--duration", "1h")...)
	if code != cli.ExitOK || !r.Interrupted || r.Events.WholeRun.Records < 100 || r.Events.Lost != 0 {
		t.Errorf("exits with %d: %+v\n%s", code, r, errs)
	}
}

func TestBenchPipelineClimbs(t *testing.T) {
	t.Parallel()
	w := newRunner(t)
	startFakeNormalizer(w, func(n uint64, r kafka.Record) []kafka.Record {
		if n > 150 {
			return nil // overload
		}
		return []kafka.Record{r}
	})

	r, code, errs := benchmarkPipeline(w, t.Context(),
		append(slices.Clone(quickPipelineArgs), "--rate", "100", "--duration", "1s", "--climb", "1m")...)
	if code != cli.ExitFailed || !strings.Contains(errs, errPipelineFaults.Error()) || len(r.Climb) < 3 {
		t.Fatalf("exits with %d: %+v\n%s", code, r, errs)
	}

	last, repeated := r.Climb[len(r.Climb)-1], r.Climb[len(r.Climb)-2]
	if last.Rate != repeated.Rate || last.RecordsPerSecond != 0 || r.Rate >= last.Rate || r.Events.Records == 0 ||
		r.Events.Lost == 0 {
		t.Errorf("reports %+v after %+v", r.Events, r.Climb)
	}
}

func TestBenchPipelineReportForPeople(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := pipelineReport{Through: throughHTTP, Transport: "https", Batch: 10, Events: flowReport{
		Lost: 3, DeadLetters: map[string]uint64{"no_account": 2},
		Partitions: map[int]load.PartitionTally{1: {}, 4: {Missing: 3}},
	}, CallRecords: &flowReport{}, Reports: &lookupReport{Found: 5}, Climb: []pipelineStep{{Rate: 7}},
		Usage: &windowUsage{Cores: .5}, Interrupted: true}
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"as fast as it goes", "3 lost", "2 no_account", "partition 4", "3 missing",
		"call records in",
		"5 looked up", "7 events/s", "0.50 cores", "these are the figures so far"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}

	if strings.Contains(out.String(), "partition 1") {
		t.Errorf("a partition without faults is in the report:\n%s", out.String())
	}
}

func TestBenchPipelineSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newRunner(t)
	for want, args := range map[string][]string{
		"--rate must be at least 0":        {"--rate", "-1"},
		"--accounts must be from 1":        {"--accounts", "0"},
		"--size must be at least":          {"--size", "10"},
		"--batch must be from 1":           {"--batch", "0"},
		"--batch times --size":             {"--batch", "10000", "--size", "100000"},
		"--connections must be from 1":     {"--connections", "0"},
		"--call-records must be":           {"--call-records", "-1"},
		"--reports needs --call-records":   {"--reports"},
		"--wait must be above 0":           {"--wait", "0s"},
		"--through is http or kafka":       {"--through", "auto"},
		"--warmup must not be below 0":     {"--warmup", "-1s"},
		"--climb needs a --rate":           {"--climb", "1s", "--rate", "0"},
		"--username needs --domain":        {"--username", "u"},
		"--account needs --username":       {"--account", "a"},
		"--server-pid is the number":       {"--server-pid", "-4"},
		"its Kafka does not answer":        nil,
		"--url must be https://host:port,": {"--url", "ws://x"},
	} {
		code := cli.ExitUsage
		if args == nil {
			code = cli.ExitFailed
		}
		w.MustFail(code, want, append([]string{"pipeline"}, args...)...)
	}
}
