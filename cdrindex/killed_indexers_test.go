package cdrindex

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

const (
	// childVariable makes the test binary run as an indexer that the test kills: the
	// broker's address, the database's URL and its path.
	childVariable = "TRUNKLINE_CDRINDEX_TEST_CHILD"
	// killVariable is the number of calls that the tests here load.
	killVariable = "TRUNKLINE_CDR_KILL_ROWS"
)

func TestMain(m *testing.M) {
	if child := os.Getenv(childVariable); child != "" {
		if err := indexForever(strings.Split(child, " ")); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// allPartitions assigns all partitions to every member: a group would wait for a killed
// member's session timeout.
type allPartitions struct{ kafka.Log }

func (t allPartitions) Work(ctx context.Context, _ kafka.GroupConfig,
	work func(context.Context, kafka.Assigned) error) error {
	n, err := t.Partitions(ctx, event.TopicCDR)
	var workers sync.WaitGroup
	for p := range n {
		workers.Go(func() {
			for ctx.Err() == nil {
				if err := work(ctx,
					kafka.Assigned{Topic: event.TopicCDR, Partition: p, Progress: noProgress{}}); err != nil &&
					ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "indexing a partition:", err)
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}

	workers.Wait()
	return err
}

type noProgress struct{ kafka.Progress }

func (noProgress) Commit(int64) {}

func indexForever(at []string) error {
	ctx := context.Background()
	c, err := kafka.Open(ctx, kafka.Config{Settings: kafka.DefaultSettings(at[:1]...)}, prometheus.NewRegistry(),
		discardLog())
	if err != nil {
		return err
	}

	for {
		db, err := sqldb.Open(ctx, sqldb.Config{URL: at[1], Path: at[2]})
		if err != nil { // it was killed too
			time.Sleep(50 * time.Millisecond)
			continue
		}

		x, err := New(ctx, Settings{}, db, prometheus.NewRegistry(), discardLog())
		if err == nil {
			return NewIndexer(x, allPartitions{kafka.NewLog(c)}, nil).Run(ctx)
		}

		_ = db.Close()
	}
}

func startChild(t *testing.T, broker string, db sqldb.Config) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{broker, db.URL, db.Path}, " "))
	cmd.Stderr = os.Stderr

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is the kill
	})

	t.Cleanup(kill)
	return kill
}

// loadTopic fills the cdr topic with calls, every tenth of them twice: the
// second time with its end, in the next month.
func loadTopic(t *testing.T, c *kafka.Cluster, partitions, calls int) {
	t.Helper()
	p := c.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = p.Close(context.Background()) }()

	var records []kafka.Record
	source := make([]int64, partitions)
	add := func(i int, cause string, started int64) {
		at := i % partitions
		row := call(name("account-%d", at), name("c%d", i), started)
		row.HangupCause = cause
		r := record(row, at, source[at])
		source[at]++
		records = append(records, r)
		if len(records) == 5000 {
			if err := p.Produce(t.Context(), records...); err != nil {
				t.Fatal(err)
			}
			records = records[:0]
		}
	}

	for i := range calls {
		add(i, "FIRST", november+int64(i)%20_000_000)
		if i%10 == 9 {
			add(i, "LAST", december+int64(i)%20_000_000)
		}
	}

	if err := p.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

func killRows(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv(killVariable))
	if os.Getenv(killVariable) != "" && err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		return 24_000
	}
	return n
}

func TestKilledIndexersLeaveExactlyTheRows(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}

	for kind, open := range map[string]func(*testing.T) (sqldb.Config, *testservice.Server){
		"sqlite": func(t *testing.T) (sqldb.Config, *testservice.Server) { return testdb.SQLite(t), nil },
		"postgres": func(t *testing.T) (sqldb.Config, *testservice.Server) {
			server := testservice.OwnPostgres(t)
			return sqldb.Config{URL: server.URL}, server
		},
	} {
		t.Run(kind, func(t *testing.T) {
			const partitions = 4
			calls := killRows(t)
			at, server := open(t)
			broker := kafkatest.StartBroker(t, embedded.Config{ListenTCP: "127.0.0.1:0"})
			c := kafkatest.Open(t, kafkatest.Config(broker), partitions)
			loadTopic(t, c, partitions, calls)
			x := openIndex(t, Settings{}, at)

			// share returns the indexed part of the topic.
			share := func() float64 {
				var done int64
				if err := x.db.QueryRowContext(t.Context(),
					`SELECT COALESCE(SUM(next), 0) FROM log_positions`).Scan(&done); err != nil {
					return 0 // the database is being started
				}
				return float64(done) / float64(calls+calls/10)
			}

			for _, until := range []float64{0.1, 0.3, 0.5} {
				kill := startChild(t, broker.TCPAddr().String(), at)
				for share() < until {
					time.Sleep(5 * time.Millisecond)
				}

				if server != nil && until < 0.5 {
					server.Kill(t)
					time.Sleep(20 * time.Millisecond)
					server.Start(t)
					for share() < until+0.1 {
						time.Sleep(5 * time.Millisecond)
					}
				}

				kill()
			}

			startChild(t, broker.TCPAddr().String(), at)
			startChild(t, broker.TCPAddr().String(), at) // they overlap
			began := time.Now()

			for share() < 1 {
				if time.Since(began) > 5*time.Minute {
					t.Fatalf("at %v", share())
				}
				time.Sleep(20 * time.Millisecond)
			}

			checkCalls(t, x, partitions, calls)
		})
	}
}

func checkCalls(t *testing.T, x *Index, partitions, calls int) {
	t.Helper()
	if rows, known := count(t, x, rowsTable), count(t, x, callsTable); rows != calls || known != calls {
		t.Errorf("%d rows and %d calls, want %d", rows, known, calls)
	}

	seen := 0
	for p := range partitions {
		err := x.Each(t.Context(), inRange(name("account-%d", p), 0, endOfTime), func(r *event.CDR) error {
			i, err := strconv.Atoi(r.CallID[1:])
			if err != nil {
				return err
			}

			want := "FIRST"
			if i%10 == 9 {
				want = "LAST"
			}
			if r.HangupCause != want {
				return fmt.Errorf("%s has %s", r.CallID, r.HangupCause)
			}

			seen++
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}

	if seen != calls {
		t.Errorf("%d rows in the reports, want %d", seen, calls)
	}
}
