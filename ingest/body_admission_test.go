package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/format/split"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

// slowKafka acknowledges batches one at a time, each after a delay, like a partition on a slow disk.
// Records that arrive meanwhile are in the next batch.
type slowKafka struct {
	ack     time.Duration
	mu      sync.Mutex
	next    chan struct{} // closed when the batch being filled is durable
	sending bool
	records int
}

func (k *slowKafka) Produce(ctx context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	k.records += len(records)
	if k.next == nil {
		k.next = make(chan struct{})
	}

	done := k.next
	if !k.sending {
		k.sending = true
		go k.send()
	}
	k.mu.Unlock()

	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send acknowledges batches until none is filled.
func (k *slowKafka) send() {
	for {
		k.mu.Lock()
		batch := k.next
		k.next, k.sending = nil, batch != nil
		k.mu.Unlock()

		if batch == nil {
			return
		}

		time.Sleep(k.ack)
		close(batch)
	}
}

// callRecord is a call record of mod_json_cdr of the given size.
func callRecord(n, size int) string {
	return fmt.Sprintf(`{"variables":{"uuid":"%d","sdp":"%s"}}`, n, strings.Repeat("x", size))
}

func callerWithKey(id string) *identity.Principal {
	return &identity.Principal{KeyID: id, AccountID: "acme", Role: identity.RoleAdmin}
}

// mod_json_cdr posts every leg of every call that ends, all at once and on one
// key, and does not try again.
func TestBurstOfOneKeyIsStored(t *testing.T) {
	const legs, size = 2000, 30 << 10
	for name, limit := range map[string]setting.Bytes{"defaults": DefaultSettings().MaxInFlightBytes,
		"least memory": 2 * MaxBody} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := DefaultSettings()
				config.MaxInFlightBytes = limit
				i := ingestOn(t, config, &fakeKafka{})
				k := &slowKafka{ack: time.Second}
				i.producer = k
				var most atomic.Int64
				var all sync.WaitGroup

				for n := range legs {
					all.Go(func() {
						r := post("freeswitch.json_cdr", "application/json", callRecord(n, size))
						if accepted, err := i.testAccept(t.Context(), r); accepted != 1 || err != nil {
							t.Errorf("leg %d: %d, %v", n, accepted, err)
						}
						most.Store(max(most.Load(), heldBytes(i)))
					})
				}

				all.Wait()
				if k.records != legs {
					t.Errorf("stored %d of %d", k.records, legs)
				}
				if most.Load() > int64(limit) || heldBytes(i) != 0 || len(i.admission.callers) != 0 {
					t.Errorf("held %d of %d bytes, %d at the end", most.Load(), limit, heldBytes(i))
				}
			})
		})
	}
}

// One key's burst must not keep another key's body waiting longer than its share.
func TestKeysAreServedFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultSettings()
		config.MaxInFlightBytes = 2 * MaxBody
		i := ingestOn(t, config, &fakeKafka{})
		k := &slowKafka{ack: time.Second}
		i.producer = k
		var burst sync.WaitGroup

		for n := range 2000 {
			burst.Go(func() {
				r := post("freeswitch.json_cdr", "", callRecord(n, 30<<10))
				if _, err := i.testAccept(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}

		synctest.Wait()
		if _, waiting := i.admission.stats(); waiting < 1000 {
			t.Fatalf("only %d bodies wait: the test does not test anything", waiting)
		}

		for n := range 3 { // another key, one after the other
			began := time.Now()
			r := post("svc.cc", "", callRecord(n, 100<<10))
			r.Caller = callerWithKey("k2")

			if _, err := i.testAccept(t.Context(), r); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 2*k.ack {
				t.Errorf("body %d of the quiet key took %v", n, took)
			}
		}

		burst.Wait()
	})
}

func TestWaitingEndsAfterTheProduceTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &fakeKafka{respond: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		config := DefaultSettings()
		config.MaxBodiesPerCaller, config.ProduceTimeout = 1, 5*time.Second
		i := ingestOn(t, config, k)
		var log bytes.Buffer
		i.log = slog.New(slog.NewTextHandler(&log, nil))

		// A body that arrives slowly holds the only place.
		ctx, cancel := context.WithCancel(t.Context())
		slow := post("svc.cc", "", "")
		slow.ContentLength = 10
		slow.Body = readerFunc(func([]byte) (int, error) { <-ctx.Done(); return 0, io.ErrUnexpectedEOF })

		var all sync.WaitGroup
		all.Go(func() {
			if _, err := i.testAccept(t.Context(), slow); fault.KindOf(err) != fault.KindInvalid {
				t.Error(err)
			}
		})

		synctest.Wait()
		began := time.Now()
		_, err := i.testAccept(t.Context(), post("svc.cc", "", `{}`))
		if f := fault.As(err); f.Kind != fault.KindLimited || f.RetryAfter <= 0 ||
			time.Since(began) != config.ProduceTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if line := log.String(); !strings.Contains(line, "level=WARN") || !strings.Contains(line, "kind=limited") ||
			!strings.Contains(line, "source=apikey:k1") {
			t.Errorf("log %q", line)
		}

		// A client that leaves does not keep its place in the queue.
		leaving, leave := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := i.testAccept(leaving, post("svc.cc", "", `{}`)); err == nil {
				t.Error("taken, although it left")
			}
		})

		synctest.Wait()
		leave()
		synctest.Wait()

		if _, waiting := i.admission.stats(); waiting != 0 {
			t.Errorf("%d bodies wait", waiting)
		}
		cancel()

		all.Wait()
		if heldBytes(i) != 0 || len(i.admission.callers) != 0 {
			t.Errorf("held %d bytes by %v", heldBytes(i), i.admission.callers)
		}
	})
}

// A queue without an end would be memory without an end.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		k := &fakeKafka{respond: func(context.Context) error { <-stop; return nil }}
		config := DefaultSettings()
		config.MaxInFlightBytes, config.MaxBodiesPerCaller = 2*MaxBody, 1
		i := ingestOn(t, config, k)
		var all sync.WaitGroup
		var refused atomic.Int64

		const most = 2 * MaxBody / waitingCost / 2 // half of the memory
		for range most + 11 {
			all.Go(func() {
				if _, err := i.testAccept(t.Context(), post("svc.cc", "", `{}`)); err != nil {
					if fault.KindOf(err) != fault.KindLimited {
						t.Error(err)
					}
					refused.Add(1)
				}
			})
		}

		synctest.Wait()
		if refused.Load() != 10 { // one is worked on
			t.Errorf("%d refused", refused.Load())
		}

		all.Go(func() { // another key still may wait
			r := post("svc.cc", "", `{}`)
			r.Caller = callerWithKey("k2")
			if _, err := i.testAccept(t.Context(), r); err != nil {
				t.Error(err)
			}
		})

		synctest.Wait()
		close(stop)
		all.Wait()

		if refused.Load() != 10 || heldBytes(i) != 0 || len(i.admission.callers) != 0 {
			t.Errorf("%d refused, %d bytes held by %v", refused.Load(), heldBytes(i), i.admission.callers)
		}
	})
}

// Bodies larger than they reserved are refused when memory is short, and come
// again.
func TestGrowthIsRefusedWhenMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		k := &fakeKafka{respond: func(context.Context) error { <-release; return nil }}
		config := DefaultSettings()
		config.MaxInFlightBytes = 2 * MaxBody
		i := ingestOn(t, config, k)

		large := callRecord(1, split.MaxRecord-100)
		array := "[" + strings.Repeat(large+",", 15) + large + "]"
		var first sync.WaitGroup
		first.Go(func() {
			if n, err := i.testAccept(t.Context(), post("svc.cc", "", array)); n != 16 || err != nil {
				t.Error(n, err)
			}
		})

		synctest.Wait() // it waits for Kafka, and holds 16 MiB and more

		other := post("svc.cc", "", array+strings.Repeat(" ", 16<<20))
		other.Caller = callerWithKey("k2")
		_, err := i.testAccept(t.Context(), other)
		if f := fault.As(err); f.Kind != fault.KindUnavailable || f.RetryAfter != time.Second {
			t.Errorf("over the limit: %v", err)
		}

		close(release)
		first.Wait()
		other.Body, other.ContentLength = strings.NewReader(array), int64(len(array))

		if _, err := i.testAccept(t.Context(), other); err != nil {
			t.Errorf("when there is room again: %v", err)
		}
		if held := heldBytes(i); held != 0 {
			t.Errorf("%d bytes still held", held)
		}
	})
}
