package origination

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// BenchmarkOriginate places calls on a platform that accepts at once, and each goes through all steps,
// which are stored and published. The time of an operation is the cost of a call, not the time that its
// user waits: that is p50-ms and p99-ms.
func BenchmarkOriginate(b *testing.B) {
	on := func(name string, place func(b *testing.B, one func())) {
		b.Run("sqlite"+name, func(b *testing.B) { runOriginateBenchmark(b, testdb.SQLite(b), place) })
		b.Run("postgres"+name, func(b *testing.B) {
			runOriginateBenchmark(b, sqldb.Config{URL: testservice.DurablePostgres(b).URL}, place)
		})
	}

	on("", func(b *testing.B, one func()) {
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	})

	on("/50_a_second", func(b *testing.B, one func()) {
		var calls sync.WaitGroup
		defer calls.Wait()

		for range retry.Ticks(b.Context(), time.Second/50) {
			if !b.Loop() {
				return
			}
			calls.Go(one)
		}
	})
}

func runOriginateBenchmark(b *testing.B, at sqldb.Config, place func(b *testing.B, one func())) {
	d := newTestNode(b, at, func(c *Config) { c.MaxCalls = 1 << 20 }).run()
	d.platform.onOriginate = func(o Order) (Placed, error) {
		go func() {
			for _, state := range states[1:] { // not all in one transaction
				time.Sleep(20 * time.Millisecond)
				d.platform.reportStates(o.ID, state)
			}
		}()

		return Placed{CallID: o.ID}, nil
	}

	alice := d.alice()
	var mu sync.Mutex
	var waits []time.Duration
	before := processorTime(b)

	place(b, func() {
		began := time.Now()
		if _, err := d.Originate(context.Background(), alice, "1002", ""); err != nil {
			b.Error(err)
		}

		mu.Lock()
		defer mu.Unlock()

		waits = append(waits, time.Since(began))
	})

	within(b, "all is stored and announced", func() bool { return d.calls.size() == 0 })
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "p99-ms")
}

// processorTime returns the CPU time of this process. Unlike wall-clock time it does not depend on the
// load of the machine.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	mustSucceed(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
