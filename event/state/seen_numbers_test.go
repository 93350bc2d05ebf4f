package state

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"time"

	"trunkline/event"
)

// identify folds an event that changes nothing but the numbers.
func (p *player) identify(i event.Identity) {
	p.last = event.NextID(p.last, p.now*1000, 3)
	p.CompleteAndFold(&Event{ID: p.last, Account: "a", Timestamp: p.now, Identity: i})
}

func TestAnIdentityIsSeenForADay(t *testing.T) {
	p, numbers := newPlayer(), []uint64{0, 1, 63, 64, numbersPerRecord - 1, numbersPerRecord, 1 << 40, math.MaxUint64}
	for _, number := range numbers {
		i := event.Identity{Run: "r", Number: number}
		if p.Seen(p.last+1, i) {
			t.Errorf("%v is seen before its event", i)
			continue
		}

		p.identify(i)
		if !p.Seen(p.last+1, i) {
			t.Errorf("%v is not seen after its event", i)
		}
	}

	first := p.last
	for _, i := range []event.Identity{{Run: "s", Number: 1}, {Run: "r", Number: 2},
		{Run: "r", Number: numbersPerRecord + 1}, {Run: "r/1", Number: 0}} {
		if p.Seen(p.last+1, i) {
			t.Errorf("%v is seen without an event", i)
		}
	}

	day := event.ID(24 * time.Hour)
	if p.Seen(first+day, event.Identity{Run: "r", Number: 1 << 40}) ||
		!p.Seen(first+day-event.MaxPartitions*10, event.Identity{Run: "r", Number: math.MaxUint64}) {
		t.Error("identities do not expire after a day")
	}

	// One that comes back after a day is new, and what was beside it stays forgotten.
	p.last = first + day
	i := event.Identity{Run: "r", Number: 1}
	p.CompleteAndFold(&Event{ID: p.last, Account: "a", Identity: i})

	if !p.Seen(p.last+1, i) || p.Seen(p.last+1, event.Identity{Run: "r", Number: 63}) {
		t.Error("numbers that have expired came back with another one")
	}
}

func TestNumbersAreReadAsTheyAreWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := &SeenNumbers{Run: `r|"/` + fmt.Sprint(random.IntN(9)),
			First:   numbersPerRecord * random.Uint64N(math.MaxUint64/numbersPerRecord),
			EventID: 1_700_000_000_000_000_000}

		for range random.IntN(300) {
			n.add(n.First + random.Uint64N(1+random.Uint64N(numbersPerRecord)))
		}

		value := n.Append(nil)
		if len(value)+len(n.Key().String()) > n.estimatedSize() {
			t.Errorf("%d bytes, estimated %d", len(value), n.estimatedSize())
		}

		got, err := ParseRecord(n.Key().String(), value, nil)
		if err != nil || !reflect.DeepEqual(got.Numbers, n) || got.EventID != n.EventID {
			t.Fatalf("%s is read as %+v, %v", value, got.Numbers, err)
		}

		if !json.Valid(value) {
			t.Errorf("%s is not JSON", value)
		}
	}

	for key, value := range map[string]string{
		"|identity|r/0":    `{"kind":"identity","run":"r","first":4096,"event_id":"cc_evt_1700000000000000000","numbers":"AQ=="}`,
		"|identity|r/1":    `{"kind":"identity","run":"r","first":1,"event_id":"cc_evt_1700000000000000000","numbers":"AQ=="}`,
		"|identity|r/4096": `{"kind":"identity","run":"r","first":4096,"event_id":"cc_evt_1700000000000000000","numbers":"!"}`,
		"|identity|/0":     `{"kind":"identity","run":"","first":0,"event_id":"cc_evt_1700000000000000000","numbers":""}`,
		"a|identity|r/0":   `{"kind":"identity","run":"r","first":0,"event_id":"cc_evt_1700000000000000000","numbers":""}`,
		"|identity|r/8192": `[]`,
	} {
		if got, err := ParseRecord(key, []byte(value), nil); err == nil {
			t.Errorf("%s %s is read as %+v", key, value, got)
		}
	}
}

// Whatever a producer writes into the header, a partition keeps a bounded number
// of records; what was added last is known.
func TestHostileIdentitiesTakeBoundedMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}

	random := rand.New(rand.NewPCG(3, 4))
	before, p := heap(), newPlayer()
	var last event.Identity

	for i := range maxNumbers + 4000 {
		last = event.Identity{Run: fmt.Sprintf("%0*d", event.MaxRun, random.IntN(1000)), Number: random.Uint64()}
		p.identify(last)
		if i%200 == 0 {
			p.Commit(func(Change) {})
		}
	}

	p.Commit(func(Change) {})
	if p.Size(Identity) != maxNumbers || !p.Seen(p.last+1, last) {
		t.Errorf("%d records, the last is seen: %v", p.Size(Identity), p.Seen(p.last+1, last))
	}
	if used := (heap() - before) >> 20; used > 25 {
		t.Errorf("%d MiB", used)
	}

	runtime.KeepAlive(p)
}

func TestAViewKeepsNumbersForANormalizerAlone(t *testing.T) {
	p := newPlayer()
	p.identify(event.Identity{Run: "r", Number: 7})
	first := records(t, p.Partition, 1)
	p.identify(event.Identity{Run: "r", Number: 8})
	second := records(t, p.Partition, 2)

	for keep, want := range map[bool]int{false: 0, true: 1} {
		v := NewView()
		v.KeepNumbers = keep
		for _, r := range append(append(first[:1:1], second...), first...) { // the first batch again, late
			v.Apply(r)
		}

		loaded := NewPartition()
		loaded.Load(v)
		if loaded.Size(Identity) != want || keep && string(bytesOf(loaded)) != string(bytesOf(p.Partition)) {
			t.Errorf("%s", bytesOf(loaded))
		}
	}
}

func BenchmarkFoldIdentity(b *testing.B) {
	p, i := newPlayer(), uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		p.now++
		p.identify(event.Identity{Run: "0b7bbb3e-5f0c-11f0-bd41-0242ac120002", Number: i * 3})
		i++
		if i%200 == 0 {
			p.Commit(func(Change) {})
		}
	}
}
