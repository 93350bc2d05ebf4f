package stats

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
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
		m := event.Message{ID: e.ID, Type: "AGENT_STATUS_CHANGE", AccountID: e.Account, Timestamp: e.Timestamp, Data: []byte(`{"a":1}`),
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

// BenchmarkMemory reports bytes per live agent, per open call and per row kept.
func BenchmarkMemory(b *testing.B) {
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
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range events {
			fold.Apply(&events[i])
			if i%300 == 0 {
				fold.Flush(func(Record) {})
			}
		}
		fold.Flush(func(Record) {})
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(fold.entries)), "B/"+name)
		runtime.KeepAlive(events)
		runtime.KeepAlive(fold)
	}
	for b.Loop() {
		const n = 50_000
		measure("agent", n, func(i int) (event.Facts, time.Duration) { return login(fmt.Sprint("agent-", i)), 0 })
		measure("call", n, func(i int) (event.Facts, time.Duration) {
			return entered("support@pbx.example.com", fmt.Sprintf("05eb7b8e-c2af-4508-bea8-%012d", i)), 0
		})
		// One call in each of 190 intervals of 263 queues; the calls themselves have ended.
		measure("row", n, func(i int) (event.Facts, time.Duration) {
			facts := abandoned(fmt.Sprint("queue-", i%263), fmt.Sprint("call-", i%263))
			if facts.WaitMS = event.MillisOf(0); i%2 == 0 {
				facts.CallID += "x"
			}
			return facts, time.Duration(i/263) * 15 * time.Minute
		})
	}
}
