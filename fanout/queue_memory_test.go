package fanout

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// blockedOutlet is a socket that takes nothing.
type blockedOutlet struct{ socketOutlet }

func (*blockedOutlet) flush(*subscriber, []byte) {}

// blockedSubscriber sees one account and cannot be written to.
func blockedSubscriber(f *Fanout, account string) *subscriber {
	s := &subscriber{limit: f.cfg.QueueBytes, outlet: &blockedOutlet{}, state: blocked, connected: time.Now(),
		principal: &identity.Principal{AccountID: account, ExpiresAt: time.Now().Add(time.Hour)}}
	s.heard.Store(time.Now().Unix())
	s.filter.Store(&filter{root: account, accounts: map[string]struct{}{account: {}}, types: event.EveryType})
	f.members.add(s)
	f.index.add(s)
	return s
}

// heapAfter is how much the heap has grown since before, with what is still
// reachable only.
func heapAfter(before uint64) int64 { return int64(heapInUse()) - int64(before) }

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what the first one handed to finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// deliverSparse gives a stream batches of 1,000 events of 1 KB, of which only
// those at the given distance are of the account.
func deliverSparse(t *testing.T, s *stream, batches, distance int, account func(int) string) {
	t.Helper()
	for range batches {
		s.live = startAt(0)
		s.deliver(t.Context(), benchRecords(1000, func(i int) string {
			if i%distance == 0 {
				return account(i / distance)
			}
			return "other"
		}))
	}
}

func TestQueueBytesBoundsTheMemoryOfABlockedSubscriber(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name        string
		distance    int // of this many events, the subscriber gets one
		compression bool
	}{{"one event of 1000", 1000, false}, {"one event of 30", 30, false}, {"every event", 1, false}, {"compressed", 300, true}} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestStream(t, Config{RingBytes: 4 * mib, QueueBytes: mib, Compression: c.compression})
			before := heapInUse()
			sub := blockedSubscriber(s.f, "shop")
			if c.compression {
				sub.outlet.(*blockedOutlet).compress.Store(true)
			}
			deliverSparse(t, s, 100, c.distance, func(int) string { return "shop" })
			s.ring.reset(0, time.Time{})
			if grown := heapAfter(before); grown > 2*mib {
				t.Errorf("a subscriber with a bound of 1 MiB keeps %d KiB in memory", grown>>10)
			}
			runtime.KeepAlive(sub)
			s.f.index.remove(sub)
		})
	}
}

func TestBlockedSubscriberMayQueueMostOfItsBytes(t *testing.T) {
	s := newTestStream(t, Config{RingBytes: 1 << 20, QueueBytes: 1 << 20})
	sub := blockedSubscriber(s.f, "shop")
	deliverSparse(t, s, 600, 1000, func(int) string { return "shop" })
	sub.mu.Lock()
	waiting, ended := sub.queue.bytes, sub.end != nil
	sub.mu.Unlock()
	if ended || waiting < 500<<10 {
		t.Errorf("of 600 sparse events of 1 KB, %d bytes wait; disconnected: %v", waiting, ended)
	}
}

func TestNodeQueueBytesBoundsTheMemoryOfAllSubscribers(t *testing.T) {
	const mib = 1 << 20
	s := newTestStream(t, Config{RingBytes: mib, QueueBytes: mib, NodeQueueBytes: 16 * mib})
	before := heapInUse()
	for i := range 200 {
		blockedSubscriber(s.f, fmt.Sprint("account", i))
	}
	for range 150 {
		deliverSparse(t, s, 2, 5, func(i int) string { return fmt.Sprint("account", i%200) })
		s.f.sweepOnce(t.Context(), time.Now())
		if grown := heapAfter(before); grown > 24*mib {
			t.Fatalf("with a bound of 16 MiB the subscribers keep %d KiB in memory", grown>>10)
		}
	}
	if left := s.f.members.count(); left == 0 || left == 200 {
		t.Errorf("%d of 200 subscribers are left", left)
	}
}

func TestSharedFramesCountOnceForTheNode(t *testing.T) {
	s := newTestStream(t, Config{QueueBytes: 1 << 20, NodeQueueBytes: 8 << 20})
	for range 2000 {
		blockedSubscriber(s.f, "shop")
	}
	s.deliver(t.Context(), benchRecords(100, func(int) string { return "shop" }))
	s.f.sweepOnce(t.Context(), time.Now())
	if left := s.f.members.count(); left != 2000 {
		t.Errorf("%d of 2000 subscribers that share 100 events are left", left)
	}
}

// The queue's count is never below what its frames keep in memory, and what it
// sends is what was pushed, wherever frames are copied out of their batches.
func TestQueueCountsWhatItHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		var q queue
		var want, sent []byte
		var batches []*batch
		for range 4 {
			b, _ := newBatch(benchRecords(1+random.IntN(60), func(int) string { return "root" }), &interner{}, false)
			batches = append(batches, b)
		}
		scratch := make([]byte, 0, writeBytes)
		for range 300 {
			switch random.IntN(5) {
			case 0:
				q.push(controlFrame(opText, []byte("cursor")))
				want = append(want, q.frames[len(q.frames)-1].wire...)
			case 1, 2:
				b := batches[random.IntN(len(batches))]
				from := random.IntN(len(b.frames))
				for i := from; i < min(len(b.frames), from+1+random.IntN(12)); i++ {
					q.push(&b.frames[i])
					want = append(want, b.frames[i].wire...)
				}
			case 3:
				q.tidy()
			case 4:
				if !q.empty() {
					part := q.gather(scratch, 1+random.IntN(20<<10))
					part = part[:random.IntN(len(part)+1)]
					sent = append(sent, part...)
					q.advance(len(part))
				}
			}
			checkHeld(t, &q)
		}
		for !q.empty() {
			part := q.gather(scratch, writeBytes)
			sent = append(sent, part...)
			q.advance(len(part))
		}
		if q.held != 0 {
			t.Fatalf("an empty queue holds %d bytes", q.held)
		}
		if !slices.Equal(sent, want) {
			t.Fatalf("%d bytes were sent, %d pushed, or they differ", len(sent), len(want))
		}
	}
}

func checkHeld(t *testing.T, q *queue) {
	t.Helper()
	least, seen := 0, map[*batch]bool{}
	for _, f := range q.frames[q.head:] {
		switch {
		case f.batch == nil:
			least += cap(f.wire)
		case !seen[f.batch]:
			seen[f.batch] = true
			least += cap(f.batch.slab) + cap(f.batch.frames)*frameBytes
		}
	}
	if q.held < least {
		t.Fatalf("the queue counts %d bytes and keeps %d", q.held, least)
	}
}
