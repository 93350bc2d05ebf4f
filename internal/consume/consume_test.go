package consume

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

const (
	testTopic = "t"
	// schema is a consumer's own table as the program of the version before made it, and what the tests store.
	schema = `CREATE TABLE older_offsets (topic_partition BIGINT PRIMARY KEY, next BIGINT NOT NULL,
			topic_id TEXT NOT NULL DEFAULT '', leader_epoch BIGINT NOT NULL DEFAULT -1, epoch BIGINT NOT NULL DEFAULT 0);
		CREATE TABLE stored (generation BIGINT, record TEXT, PRIMARY KEY (generation, record))`
)

// testStore is a consumer's database.
type testStore struct {
	db        *sqldb.DB
	positions *Positions

	mu    sync.Mutex
	gaps  []*kafka.GapError
	moved int
}

func openStore(t *testing.T, at sqldb.Config) *testStore {
	t.Helper()
	db := testdb.Open(t, at)
	if _, err := db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}

	p, err := NewPositions(t.Context(), db, "test", OlderTable{Table: "older_offsets", Generation: "epoch"})
	if err != nil {
		t.Fatal(err)
	}

	return &testStore{db: db, positions: p}
}

// start runs a consumer until the returned function is called.
func (s *testStore) start(log kafka.Log) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c := New(Config{LogReader: log, Topic: testTopic, Group: "g", Positions: s.positions,
		Limits:   Limits{Records: 50, Bytes: 1 << 20, Time: time.Millisecond},
		NewBatch: func(int) Batch { return &testBatch{db: s.db} },
		Waits:    func(int, string, error, time.Duration) {},
		Moved: func(int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.moved++
		},
		Lost: func(_ int, _ Position, gap *kafka.GapError) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.gaps = append(s.gaps, gap)
		},
		Delay: prometheus.NewHistogram(prometheus.HistogramOpts{}),
	})

	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()

	return sync.OnceFunc(func() {
		cancel()
		<-done
	})
}

// await waits until the consumer is at an offset.
func (s *testStore) await(t *testing.T, offset int64) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		at, _, err := s.positions.Find(t.Context(), s.db, 0)
		if err == nil && at.Offset == offset {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("at %+v, %v, want offset %d", at, err, offset)
		}
	}
}

// count returns the number of records stored.
func (s *testStore) count(t *testing.T) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM stored`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// testBatch inserts each record: one that is stored twice is an error, which ends the test's wait.
type testBatch struct {
	db         *sqldb.DB
	generation int64
	records    []string
}

func (b *testBatch) Reset() { b.records = nil }

func (b *testBatch) Add(r *kafka.Record, generation int64) {
	b.generation, b.records = generation, append(b.records, string(r.Value))
}

func (b *testBatch) Store(ctx context.Context, move func(context.Context, *sqldb.BulkTx) error) error {
	return b.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		if err := move(ctx, tx); err != nil {
			return err
		}

		for _, record := range b.records {
			_, err := tx.ExecContext(ctx, `INSERT INTO stored VALUES ($1, $2)`, b.generation, record)
			if err != nil {
				return err
			}
		}

		return nil
	})
}

// addRecords appends n records, each with a value of its own.
func addRecords(log *kafkatest.Log, prefix string, n int) {
	for i := range n {
		log.Append(kafka.Record{Topic: testTopic,
			Value: []byte(prefix + string(rune('a'+i/26)) + string(rune('a'+i%26)))})
	}
}

// Members of a group that has given the partition to each of them, through a cut, a new log and records that are gone.
func TestMembersThatOverlapStoreEachRecordOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		s, log := openStore(t, at), kafkatest.NewLog(1)
		for range 3 {
			defer s.start(log)()
		}

		addRecords(log, "1", 500)
		s.await(t, 500)
		log.Truncate(testTopic, 0, 400)
		addRecords(log, "2", 300)
		s.await(t, 700)
		log.Recreate(testTopic)
		addRecords(log, "1", 200) // of another generation
		s.await(t, 200)

		if n := s.count(t); n != 500+300+200 {
			t.Errorf("%d records are stored", n)
		}
	})
}

// The group's lag is that of the log there is, also while a new one is shorter than the one before.
func TestTheGroupFollowsALogThatBeginsAgain(t *testing.T) {
	s, log := openStore(t, testdb.SQLite(t)), kafkatest.NewLog(1)
	log.SetCommitRule(func(old, next int64) int64 { return max(old, next) }) // as kafka.Assignment does
	defer s.start(log)()

	committed := func(want int64) {
		t.Helper()
		s.await(t, want)
		for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			got, _ := log.Progress(testTopic, 0).Committed()
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the group is at %d, want %d", got, want)
			}
		}
	}

	addRecords(log, "1", 100)
	committed(100)
	log.Truncate(testTopic, 0, 50)
	addRecords(log, "2", 10)
	committed(60)
	log.Recreate(testTopic)
	addRecords(log, "3", 20)
	committed(20)
}

// A leader that lacks the end of the log, and gets it, costs no record; records that are gone are told once.
func TestAGapIsLookedAtAgain(t *testing.T) {
	s, log := openStore(t, testdb.SQLite(t)), kafkatest.NewLog(1)
	addRecords(log, "1", 100)
	stop := s.start(log)
	s.await(t, 100)
	stop()
	behind := &behindLog{Log: log, left: 3}
	stop = s.start(behind)
	addRecords(log, "2", 100)
	s.await(t, 200)
	stop()

	if len(s.gaps) != 0 || behind.left != 0 || s.moved != 0 {
		t.Errorf("%d gaps, %d readers left, moved %d times", len(s.gaps), behind.left, s.moved)
	}

	log.Delete(testTopic, 0, 250)
	addRecords(log, "3", 10)
	stop = s.start(log)
	s.await(t, 260)
	stop()

	if n := s.count(t); n != 210 {
		t.Errorf("%d records are stored", n)
	}
	if len(s.gaps) != 1 || s.gaps[0].Kind != kafka.GapExpired || s.gaps[0].Lost() != 50 {
		t.Errorf("gaps %v", s.gaps)
	}
}

// behindLog is read from a leader that lacks the end of the log, some times.
type behindLog struct {
	kafka.Log
	left int // readers that are told so
}

func (l *behindLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	if l.left == 0 {
		return l.Log.Read(cfg)
	}
	l.left--
	return behindSource{l.Log.Read(cfg),
		kafka.OutOfRange(cfg.Topic, cfg.Partition, cfg.From.Offset, 0, cfg.From.Offset-1)}
}

type behindSource struct {
	kafka.Source
	gap *kafka.GapError
}

func (s behindSource) Read(context.Context) ([]kafka.Record, error) { return nil, s.gap }
