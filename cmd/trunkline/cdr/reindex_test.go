package cdr

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/settings"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p)}
	})
}

// runReindex returns the output of the command.
func runReindex(w *clitest.Runner, s *settings.Settings, cluster *kafka.Cluster) string {
	w.T.Helper()
	var out, errs bytes.Buffer
	p := &cli.Program{In: strings.NewReader(""), Out: &out, Err: &errs, Env: w.Environ}
	if err := reindex(p, w.T.Context(), s, cluster); err != nil {
		w.T.Fatal(err)
	}
	return out.String()
}

func TestReindexBesideAServer(t *testing.T) {
	w := newRunner(t)
	cluster := w.OpenKafka()
	s := settings.Default()
	s.DataDir = w.Dir

	if err := os.WriteFile(filepath.Join(w.Dir, "trunkline.db"), nil, 0o600); err != nil { // an empty database
		t.Fatal(err)
	}

	const nothing = "0 records read, 0 rows written, 0 records were no call record\n"
	if out := runReindex(w, s, cluster); out != nothing {
		t.Errorf("without a topic it prints %q", out)
	}
	if err := cluster.EnsureTopics(t.Context(), topics.All(2)); err != nil {
		t.Fatal(err)
	}
	if out := runReindex(w, s, cluster); out != nothing {
		t.Errorf("with an empty topic it prints %q", out)
	}

	producer := cluster.NewProducer(kafka.ProducerConfig{})
	defer producer.Close(t.Context())

	now := time.Now().Unix()
	for n := range 10 {
		value := fmt.Sprintf(`{"id":"r%d","account_id":"demo","call_id":"c%d","interaction_id":"i","timestamp":%d}`, n,
			n, now)
		if n == 9 {
			value = `{}`
		}

		err := producer.Produce(t.Context(), kafka.Record{
			Topic: event.TopicCDR, Partition: n % 2, Key: []byte("demo"), Value: []byte(value),
			Headers: []kafka.Header{{Key: event.HeaderPosition, Value: fmt.Appendf(nil, "%d:%d", n%2, n)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	for range 2 {
		if out := runReindex(w, s, cluster); out != "10 records read, 9 rows written, 1 records were no call record\n" {
			t.Errorf("prints %q", out)
		}
	}

	if n := countRecords(w, s, cdrindex.Filter{Filter: report.Filter{Account: "demo", Start: now, End: now}}); n != 9 {
		t.Errorf("%d rows", n)
	}
}

// countRecordsOf counts the rows of an account.
func countRecordsOf(w *clitest.Runner, s *settings.Settings, account string) int {
	w.T.Helper()
	return countRecords(w, s,
		cdrindex.Filter{Filter: report.Filter{Account: account, Start: 1795000000, End: 1797000000}})
}

func countRecords(w *clitest.Runner, s *settings.Settings, f cdrindex.Filter) int {
	w.T.Helper()
	p := &cli.Program{Err: &bytes.Buffer{}}
	db, err := backend.OpenDatabase(w.T.Context(), s, p.ToolLog())
	if err != nil {
		w.T.Fatal(err)
	}
	defer func(db *sqldb.DB) { _ = db.Close() }(db)

	index, err := cdrindex.New(w.T.Context(), cdrindex.Settings{}, db, prometheus.NewRegistry(), p.ToolLog())
	if err != nil {
		w.T.Fatal(err)
	}

	page, err := index.List(w.T.Context(), f)
	if err != nil {
		w.T.Fatal(err)
	}

	return len(page.Data)
}
