package origination

import (
	"syscall"
	"testing"
	"time"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// BenchmarkOriginate places calls on a platform that accepts at once, and each goes through all steps,
// which are stored and published. The time of an operation is the cost of a call, not the time that its
// user waits.
func BenchmarkOriginate(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { runOriginateBenchmark(b, testdb.SQLite(b)) })
	b.Run("postgres", func(b *testing.B) { runOriginateBenchmark(b, sqldb.Config{URL: testservice.Postgres(b)}) })
}

func runOriginateBenchmark(b *testing.B, at sqldb.Config) {
	d := newTestNode(b, at, func(c *Config) { c.MaxCalls = 1 << 20 }).run()
	d.platform.onOriginate = func(o Order) (Placed, error) {
		go func() {
			for _, state := range states[1:] { // not all in one transaction
				time.Sleep(20 * time.Millisecond)
				d.platform.says(o.ID, state)
			}
		}()
		return Placed{CallID: o.ID}, nil
	}
	alice := d.alice()
	before := processorTime(b)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := d.Originate(b.Context(), alice, "1002", ""); err != nil {
				b.Error(err)
			}
		}
	})
	within(b, "all is stored and announced", func() bool { return d.calls.size() == 0 })
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
}

// processorTime returns the CPU time of this process. Unlike wall-clock time it does not depend on the
// load of the machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	mustSucceed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
