package fanout

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// blockedTransport is a socket that takes nothing.
type blockedTransport struct{ webSocket }

func (*blockedTransport) sendQueued(*subscriber, []byte) {}

// blockedSubscriber sees one account and cannot be written to.
func blockedSubscriber(f *Fanout, account string) *subscriber {
	s := &subscriber{queueLimit: int(f.cfg.QueueBytes), transport: &blockedTransport{}, queueOwner: blocked,
		connectedAt: time.Now(),
		principal:   &identity.Principal{AccountID: account, ExpiresAt: time.Now().Add(time.Hour)}}
	s.lastSeen.Store(time.Now().Unix())
	s.filter.Store(&filter{root: account, accounts: map[string]struct{}{account: {}}, types: event.EveryType,
		names: event.EveryName})
	f.subscribers.add(s)
	s.partitions.interest.add(0)
	f.index.add(s)

	return s
}

// heapAfter returns the growth of the heap since before, with what is still
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
func deliverSparse(t *testing.T, s *partitionStream, batches, distance int, account func(int) string) {
	t.Helper()
	for range batches {
		s.livePosition = positionAt(0)
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
	}{{"one event of 1000", 1000, false}, {"one event of 30", 30, false}, {"every event", 1, false},
		{"compressed", 300, true}} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestStream(t,
				Config{Settings: Settings{RingBytes: 4 * mib, QueueBytes: mib, Compression: c.compression}})
			before := heapInUse()
			sub := blockedSubscriber(s.f, "shop")

			if c.compression {
				sub.transport.(*blockedTransport).compress.Store(true)
			}

			deliverSparse(t, s, 100, c.distance, func(int) string { return "shop" })
			s.ring.reset(0, time.Time{})
			if grown := heapAfter(before); grown > 2*mib {
				t.Errorf("a subscriber with a bound of 1 MiB keeps %d KiB in memory", grown>>10)
			}

			runtime.KeepAlive(sub)
			s.f.index.delete(sub)
		})
	}
}

func TestBlockedSubscriberMayQueueMostOfItsBytes(t *testing.T) {
	s := newTestStream(t, Config{Settings: Settings{RingBytes: 1 << 20, QueueBytes: 1 << 20}})
	sub := blockedSubscriber(s.f, "shop")
	deliverSparse(t, s, 600, 1000, func(int) string { return "shop" })
	sub.mu.Lock()
	waiting, ended := sub.queue.WaitingBytes(), sub.closing != nil
	sub.mu.Unlock()
	if ended || waiting < 500<<10 {
		t.Errorf("of 600 sparse events of 1 KB, %d bytes wait; disconnected: %v", waiting, ended)
	}
}

func TestNodeQueueBytesBoundsTheMemoryOfAllSubscribers(t *testing.T) {
	if testing.Short() {
		t.Skip("fills queues")
	}

	const mib = 1 << 20
	// however slow the machine
	s := newTestStream(t,
		Config{Settings: Settings{RingBytes: mib, QueueBytes: mib, NodeQueueBytes: 16 * mib, IdleTimeout: time.Hour}})
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

	if left := s.f.subscribers.countConnected(); left == 0 || left == 200 {
		t.Errorf("%d of 200 subscribers are left", left)
	}
}

func TestSharedFramesCountOnceForTheNode(t *testing.T) {
	s := newTestStream(t, Config{Settings: Settings{QueueBytes: 1 << 20, NodeQueueBytes: 8 << 20}})
	for range 2000 {
		blockedSubscriber(s.f, "shop")
	}
	s.deliver(t.Context(), benchRecords(100, func(int) string { return "shop" }))
	s.f.sweepOnce(t.Context(), time.Now())
	if left := s.f.subscribers.countConnected(); left != 2000 {
		t.Errorf("%d of 2000 subscribers that share 100 events are left", left)
	}
}
