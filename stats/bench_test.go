package stats

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// cpuTime returns the processor time of the process, which says more than the clock
// on a machine that does other work too.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// workday makes events of a day: agents take calls of queues, one after another.
func workday(agents, queues, n int) []state.Event {
	events, last := make([]state.Event, 0, n), event.ID(0)
	step := 24 * time.Hour / time.Duration(n)
	add := func(facts event.Facts) {
		at := day.Add(time.Duration(len(events)) * step)
		last = event.NextID(last, at.UnixMilli(), 3)
		facts.TimestampMS = at.UnixMilli()
		events = append(events, state.Event{ID: last, Account: account, Timestamp: at.Unix(), Facts: facts})
	}

	for i := range agents {
		add(login(fmt.Sprint("agent-", i)))
	}

	for i := 0; len(events)+5 < n; i++ {
		agent, queue, call := fmt.Sprint("agent-", i%agents), fmt.Sprint("queue-", i%queues), fmt.Sprint("call-", i)
		add(entered(queue, call))
		add(offered(queue, call, agent))
		add(answered(queue, call, agent))
		add(ended(queue, call, agent))
		add(agentState(agent, event.Available))
	}

	return events
}

func BenchmarkFold(b *testing.B) {
	events := workday(1000, 50, 500_000)
	began := cpuTime()
	for b.Loop() {
		f := NewFold(testRules())
		for i := range events {
			f.Apply(&events[i])
			if i%300 == 0 {
				f.Flush(func(Record) {})
			}
		}
	}

	b.ReportMetric(float64(len(events)*b.N)/(cpuTime()-began).Seconds(), "events/cpu-s")
}

// Reading the record is part of what a processor does for each event.
func BenchmarkFoldRecords(b *testing.B) {
	type record struct{ key, value []byte }
	var records []record
	for _, e := range workday(1000, 50, 200_000) {
		m := event.Message{ID: e.ID, Type: "AGENT_STATUS_CHANGE", AccountID: e.Account, Timestamp: e.Timestamp,
			Data:     []byte(`{"a":1}`),
			Metadata: event.Metadata{Source: "test", OriginalFormat: "test", Facts: e.Facts}}
		records = append(records, record{[]byte(e.Account), m.Append(nil)})
	}

	began := cpuTime()
	for b.Loop() {
		f := NewFold(testRules())
		for i := range records {
			e, _, err := state.ParseEvent(records[i].key, records[i].value, nil)
			if err != nil {
				b.Fatal(err)
			}

			f.Apply(&e)
			if i%300 == 0 {
				f.Flush(func(Record) {})
			}
		}
	}

	b.ReportMetric(float64(len(records)*b.N)/(cpuTime()-began).Seconds(), "events/cpu-s")
}

// BenchmarkMemory reports bytes per live agent, per open call and per queue with one call that has ended.
func BenchmarkMemory(b *testing.B) {
	collect := func() { // unique texts are freed by a later collection than their handles
		for range 4 {
			runtime.GC()
		}
	}

	measure := func(name string, n int, facts func(i int) (event.Facts, time.Duration)) {
		events, last := make([]state.Event, 0, n), event.ID(0)
		for i := range n {
			f, after := facts(i)
			last = event.NextID(last, day.Add(after).UnixMilli(), 3)
			f.TimestampMS = day.Add(after).UnixMilli()
			events = append(events, state.Event{ID: last, Account: account, Facts: f})
		}

		fold := NewFold(testRules())
		var before, after runtime.MemStats
		collect()
		runtime.ReadMemStats(&before)

		for i := range events {
			fold.Apply(&events[i])
			if i%300 == 0 {
				fold.Flush(func(Record) {})
			}
		}

		fold.Flush(func(Record) {})
		collect()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/"+name)
		runtime.KeepAlive(events)
		runtime.KeepAlive(fold)
	}

	for b.Loop() {
		const n = 50_000
		measure("agent", n, func(i int) (event.Facts, time.Duration) { return login(fmt.Sprint("agent-", i)), 0 })
		measure("call", n, func(i int) (event.Facts, time.Duration) {
			return entered("support@pbx.example.com", fmt.Sprintf("05eb7b8e-c2af-4508-bea8-%012d", i)), 0
		})

		measure("queue", n, func(i int) (event.Facts, time.Duration) {
			facts := abandoned(fmt.Sprint("queue-", i), fmt.Sprint("call-", i))
			facts.WaitMS = event.MillisOf(0)
			return facts, 0
		})
	}
}

// watchedLog reports how far a processor has written.
type watchedLog struct {
	kafka.Log
	next *atomic.Int64
}

func (l watchedLog) Work(ctx context.Context, cfg kafka.GroupConfig,
	work func(context.Context, kafka.Assigned) error) error {
	return l.Log.Work(ctx, cfg, func(ctx context.Context, assigned kafka.Assigned) error {
		assigned.Progress = watchedProgress{assigned.Progress, l.next}
		return work(ctx, assigned)
	})
}

type watchedProgress struct {
	kafka.Progress
	next *atomic.Int64
}

func (p watchedProgress) Commit(next int64) {
	p.next.Store(next)
	p.Progress.Commit(next)
}

// BenchmarkReplay folds a day of events from the log of an embedded broker, with all
// the work of a processor, and then folds them again beside the live figures. Both
// must produce the rows of the fold alone. TRUNKLINE_REPLAY_EVENTS is the number of
// events.
func BenchmarkReplay(b *testing.B) {
	n := 100_000
	if text := os.Getenv("TRUNKLINE_REPLAY_EVENTS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatal(err)
		}
	}

	c := kafkatest.OpenEmbedded(b, 1)
	want := replayedDay(b, c, n)
	for b.Loop() {
		var next atomic.Int64
		requests := askRebuild(0)
		requests.one.State = RebuildDone // until the events are folded
		began, cpu := time.Now(), cpuTime()
		stop := startWith(b, c, Deps{LogReader: watchedLog{kafka.NewLog(c), &next}, Rebuilds: requests})
		stopProgress := showProgress("replayed", &next, n)

		for next.Load() < int64(n) {
			time.Sleep(10 * time.Millisecond)
		}

		stopProgress()
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "events/s")
		b.ReportMetric(float64(n)/(cpuTime()-cpu).Seconds(), "events/cpu-s")
		compare(b, readRows(b, c), want)

		began, cpu = time.Now(), cpuTime()
		requests.mu.Lock()
		requests.one.State = RebuildOpen
		requests.mu.Unlock()

		for {
			requests.mu.Lock()
			state, message := requests.one.State, requests.one.Message
			requests.mu.Unlock()

			if state == RebuildDone {
				break
			}
			if state == RebuildFailed {
				b.Fatal("the rebuild failed: ", message)
			}

			time.Sleep(10 * time.Millisecond)
		}

		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "again/s")
		b.ReportMetric(float64(n)/(cpuTime()-cpu).Seconds(), "again/cpu-s")
		stop()
		compare(b, readRows(b, c), want)
	}
}

// showProgress prints a count every ten seconds until it is stopped: a day of ten
// million events takes minutes.
func showProgress(what string, done *atomic.Int64, n int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ticker := time.NewTicker(10 * time.Second); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				fmt.Fprintf(os.Stderr, "%s %d of %d events\n", what, done.Load(), n)
			}
		}
	}()

	return cancel
}

// replayedDay produces n events of a day and returns the rows of their fold.
func replayedDay(b *testing.B, c *kafka.Cluster, n int) (rows topic) {
	const queues = 50
	agents := max(10, n/10_000)
	rows = topic{}
	f, last := NewFold(testRules()), event.ID(0)
	var events []state.Event
	done := 0
	var produced atomic.Int64
	defer showProgress("produced", &produced, n)()

	add := func(facts event.Facts) {
		at := day.Add(time.Duration(done) * (24 * time.Hour / time.Duration(n)))
		last = event.NextID(last, at.UnixMilli(), 0)
		facts.TimestampMS = at.UnixMilli()
		e := state.Event{ID: last, Account: account, Timestamp: at.Unix(), Facts: facts}
		f.Apply(&e)
		events = append(events, e)
		done++
		if len(events) < 10_000 && done < n {
			return
		}

		produceEvents(b, c, events)
		produced.Store(int64(done))
		events = events[:0]

		f.Flush(func(r Record) {
			if k, err := parseKey(r.Key); err == nil && r.Value != nil && (k.kind == kindQueue || k.kind == kindAgent) {
				rows[r.Key] = string(r.Value)
			}
		})
	}

	for i := range agents {
		add(login(fmt.Sprint("agent-", i)))
	}

	for i := 0; done+5 <= n; i++ {
		agent, queue, call := fmt.Sprint("agent-", i%agents), fmt.Sprint("queue-", i%queues), fmt.Sprint("call-", i)
		for _, facts := range []event.Facts{entered(queue, call), offered(queue, call, agent),
			answered(queue, call, agent), ended(queue, call, agent), agentState(agent, event.Available)} {
			add(facts)
		}
	}

	for done < n {
		add(tick())
	}

	return rows
}
