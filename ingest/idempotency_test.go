package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// onBothDatabases runs a test on SQLite and on PostgreSQL.
func onBothDatabases(t *testing.T, test func(t *testing.T, open func(k *fakeKafka) *Ingest)) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		db := testdb.Open(t, at)
		test(t, func(k *fakeKafka) *Ingest { // each one is a process on the same database
			i, err := New(t.Context(), DefaultSettings(),
				Deps{Formats: testFormats, Accounts: accountList{"acme"}, Producer: k, LogReader: k, DB: db},
				prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}

			return i
		})
	})
}

// keyed is a request with an Idempotency-Key.
func keyed(key, body string) Request {
	r := post("svc.cc", "", body)
	r.IdempotencyKey = key
	return r
}

func TestIdempotencyKey(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		k := &fakeKafka{}
		i := open(k)
		want := func(i *Ingest, r Request, want Result, kind fault.Kind) {
			t.Helper()
			if got, err := i.Accept(t.Context(), r); got != want || fault.KindOf(err) != kind {
				t.Errorf("%+v, %v, want %+v, %q", got, err, want, kind)
			}
		}

		want(i, keyed("k-1", `[{},{}]`), Result{Accepted: 2}, "")
		want(i, keyed("k-1", `[{},{}]`), Result{Accepted: 2, Replayed: true}, "")
		want(open(k), keyed("k-1", `[{},{}]`), Result{Accepted: 2, Replayed: true}, "") // another process
		want(i, keyed("k-1", `[{}]`), Result{}, fault.KindConflict)
		other := keyed("k-1", `[{},{}]`)
		other.Format = "generic"
		want(i, other, Result{}, fault.KindConflict)
		other = keyed("k-1", `{}`)
		other.Caller = &identity.Principal{KeyID: "k2", AccountID: "acme"}
		want(i, other, Result{Accepted: 1}, "") // the keys of another caller are its own
		want(i, keyed("k-2", `[]`), Result{}, "")
		want(i, keyed("k-3", `[`), Result{}, fault.KindInvalid) // takes no key
		want(i, keyed("k-3", `{}`), Result{Accepted: 1}, "")
		want(i, keyed("a b", `{}`), Result{}, fault.KindInvalid)
		want(i, keyed(strings.Repeat("x", 256), `{}`), Result{}, fault.KindInvalid)

		if len(k.records) != 4 {
			t.Errorf("%d records stored", len(k.records))
		}
	})
}

func TestConcurrentRepeatsAreStoredOnce(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		release := make(chan struct{})
		began := make(chan struct{}, 100)
		k := &fakeKafka{respond: func(context.Context) error { began <- struct{}{}; <-release; return nil }}
		nodes := []*Ingest{open(k), open(k)}
		var fresh, repeated atomic.Int64
		var all sync.WaitGroup

		for n := range 10 {
			all.Go(func() {
				result, err := nodes[n%2].Accept(t.Context(), keyed("k", `{"a":1}`))
				if err != nil || result.Accepted != 1 {
					t.Error(result, err)
				}

				if result.Replayed {
					repeated.Add(1)
				} else {
					fresh.Add(1)
				}
			})
		}

		<-began
		if _, err := nodes[1].Accept(t.Context(), keyed("k", `{"a":2}`)); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("another body while the first is being stored: %v", err)
		}

		close(release)
		all.Wait()
		if k.calls != 1 || fresh.Load() != 1 || repeated.Load() != 9 {
			t.Errorf("%d produced, %d fresh, %d repeated", k.calls, fresh.Load(), repeated.Load())
		}
	})
}

// What Kafka did not acknowledge is looked up, and what it does not have is produced again under the same key,
// never another body.
func TestIdempotencyKeyAfterAFailure(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		for n, test := range []struct {
			stored   int // of three records, before the failure
			calls    int
			replayed bool
		}{{0, 2, false}, {2, 2, false}, {3, 1, true}} {
			away := true
			k := &fakeKafka{
				respond: func(context.Context) error {
					if away {
						return errors.New("away")
					}
					return nil
				},
				stores: func(n int) int {
					if away {
						return test.stored
					}
					return n
				},
			}

			i, key := open(k), fmt.Sprint("k", n)
			const body = `[{"a":1},{"a":1},{"a":2}]`
			if _, err := i.Accept(t.Context(), keyed(key, body)); fault.KindOf(err) != fault.KindUnavailable {
				t.Fatal(err)
			}

			away = false
			if _, err := i.Accept(t.Context(), keyed(key, `{"a":2}`)); fault.KindOf(err) != fault.KindConflict {
				t.Errorf("another body: %v", err)
			}

			for repeat, i := range []*Ingest{i, open(k)} { // on this process and on another one
				result, err := i.Accept(t.Context(), keyed(key, body))
				if err != nil || result != (Result{Accepted: 3, Replayed: test.replayed || repeat > 0}) {
					t.Errorf("%d stored: %+v %v", test.stored, result, err)
				}
			}

			var values []string
			for _, r := range k.records {
				values = append(values, string(r.Value))
			}

			if got := strings.Join(values, " "); k.calls != test.calls || got != `{"a":1} {"a":1} {"a":2}` {
				t.Errorf("%d stored: produced %d times, %s", test.stored, k.calls, got)
			}
		}
	})
}

// Kafka answers after the request has got 503: the body is stored once, and a repeat gets its answer.
func TestIdempotencyKeyOfASlowKafka(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		answer := make(chan struct{})
		var asked atomic.Bool
		k := &fakeKafka{respond: func(context.Context) error { asked.Store(true); <-answer; return nil }}
		i := open(k)
		i.settings.ProduceTimeout = 50 * time.Millisecond

		for repeats := 0; repeats < 2; {
			if asked.Load() {
				repeats++
			} else {
				i.settings.ProduceTimeout *= 2 // the database was slower
			}

			if _, err := i.Accept(t.Context(), keyed("k", `{}`)); fault.KindOf(err) != fault.KindUnavailable {
				t.Fatal(err)
			}
		}

		if heldBytes(i) == 0 {
			t.Error("the body's memory was released while it is being stored")
		}

		close(answer)
		i.settings.ProduceTimeout = time.Minute
		if result, err := i.Accept(t.Context(), keyed("k", `{}`)); err != nil ||
			result != (Result{Accepted: 1, Replayed: true}) {
			t.Errorf("%+v %v", result, err)
		}

		for deadline := time.Now().Add(time.Minute); heldBytes(i) != 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the body's memory is held")
			}
		}

		if k.calls != 1 {
			t.Errorf("produced %d times", k.calls)
		}
	})
}

// A lease is renewed while its request works: no repeat produces beside it.
func TestALeaseIsRenewedWhileABodyIsStored(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		k := &fakeKafka{respond: func(context.Context) error { time.Sleep(leaseTime + time.Second); return nil }}
		nodes := []*Ingest{open(k), open(k)}
		var all sync.WaitGroup

		for n := range nodes {
			all.Go(func() {
				if _, err := nodes[n].Accept(t.Context(), keyed("k", `{}`)); err != nil {
					t.Error(err)
				}
			})
		}

		all.Wait()
		if k.calls != 1 {
			t.Errorf("produced %d times", k.calls)
		}
	})
}

// A record that its topic does not take, made by hand with a smaller limit, is not
// something to send again: the others are stored.
func TestRecordBeyondTheTopicsLimit(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		k := &fakeKafka{respond: func(context.Context) error {
			return &fault.Error{Kind: fault.KindTooLarge, Message: "too large", Cause: kafka.ErrTopicLimit}
		}}
		i := open(k)
		const body = `[{},{"n":1},{"n":1000000},{}]`
		const message = "Record 3 of the body has 13 bytes, more than the topic cc.raw takes; the records that it takes are stored"

		for _, key := range []string{"", "k", "k"} {
			result, err := i.Accept(t.Context(), keyed(key, body))
			if f := fault.As(err); result != (Result{}) || f.Kind != fault.KindTooLarge || f.Message != message {
				t.Errorf("with key %q: %+v %v", key, result, err)
			}
		}

		if k.calls != 2 {
			t.Errorf("produced %d times, want once without a key and once with it", k.calls)
		}
	})
}

// A process that died while it stored a body leaves a lease, which ends within 3 s. What Kafka has of the body
// then is not produced again.
func TestIdempotencyKeyOfADeadProcess(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		for key, acknowledged := range map[string]bool{"before Kafka": false, "behind Kafka": true} {
			key = strings.ReplaceAll(key, " ", "-")
			k := &fakeKafka{}
			i := open(k)
			const body = `{"a":1}`
			r := keyed(key, body)
			c, err := i.keys.claim(t.Context(), r.Caller.AccountID, sourceName(r.Caller), key,
				digest(r.Format, []byte(body)), 1)
			if err != nil {
				t.Fatal(err) // and never completed
			}

			var account string // by which the key is purged
			err = i.keys.db.QueryRowContext(t.Context(), `SELECT account_id FROM ingest_keys WHERE key = $1`,
				key).Scan(&account)
			if err != nil || account == "" || account != r.Caller.AccountID {
				t.Errorf("the key is of account %q: %v", account, err)
			}

			if acknowledged {
				records := []kafka.Record{{Value: []byte(body)}}
				c.numberRecords(records)
				if err := k.Produce(t.Context(), records...); err != nil {
					t.Fatal(err)
				}
			}

			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()

			if _, err := i.Accept(short, keyed(key, body)); fault.KindOf(err) != fault.KindUnavailable ||
				len(k.records) > 1 {
				t.Errorf("within the lease: %v, %d records", err, len(k.records))
			}

			began := time.Now()
			result, err := i.Accept(t.Context(), keyed(key, body))
			if err != nil || result != (Result{Accepted: 1, Replayed: acknowledged}) || len(k.records) != 1 {
				t.Errorf("%s: %+v %v, %d records", key, result, err, len(k.records))
			}

			if took := time.Since(began); took > 5*time.Second { // 3 s, on a slow machine
				t.Errorf("%s: it took %v", key, took)
			}
		}
	})
}

// A process that is stopped with a body before it sends it, and goes on after another one has stored the body,
// sends it with the same identities: the normalizer makes each record one event.
func TestAStoppedProcessGoesOnWithTheSameIdentities(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		k := &fakeKafka{}
		stopped, other := open(k), open(k)
		const body = `[{"a":1},{"a":2}]`
		r := keyed("k", body)
		c, err := stopped.keys.claim(t.Context(), r.Caller.AccountID, sourceName(r.Caller), r.IdempotencyKey,
			digest(r.Format, []byte(body)), 2)
		if err != nil {
			t.Fatal(err)
		}

		result, err := other.Accept(t.Context(), keyed("k", body))
		if err != nil || result != (Result{Accepted: 2}) {
			t.Fatalf("%+v %v", result, err)
		}

		records := []kafka.Record{{Value: []byte(`{"a":1}`)}, {Value: []byte(`{"a":2}`)}}
		result, err = stopped.storeClaimed(t.Context(), r, event.TopicRaw, records, c)
		if err != nil || result != (Result{Accepted: 2}) {
			t.Errorf("the stopped one: %+v %v", result, err)
		}

		for n, i := range []*Ingest{stopped, other} {
			if _, err := i.Accept(t.Context(), keyed(fmt.Sprint("other-", n), body)); err != nil {
				t.Fatal(err)
			}
		}

		values := map[string][]string{} // by identity
		for _, r := range k.records {
			identity := string(r.Header(event.HeaderIdentity))
			if _, err := event.ParseIdentity(identity); err != nil {
				t.Errorf("%s: identity %q: %v", r.Value, identity, err)
			}
			values[identity] = append(values[identity], string(r.Value))
		}

		if len(k.records) != 8 || len(values) != 6 {
			t.Errorf("%d records with %d identities: %v", len(k.records), len(values), values)
		}

		for _, copies := range values {
			if copies[0] != copies[len(copies)-1] {
				t.Errorf("one identity: %v", copies)
			}
		}
	})
}

func TestIdempotencyKeysAreBounded(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		i := open(&fakeKafka{})
		for n := range 5 {
			if _, err := i.Accept(t.Context(), keyed(fmt.Sprint(n), `{}`)); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := i.keys.db.ExecContext(t.Context(),
			`UPDATE ingest_keys SET expires_at = 0 WHERE key < '3'`); err != nil {
			t.Fatal(err)
		}
		if err := i.keys.purge(t.Context()); err != nil {
			t.Fatal(err)
		}

		var left int
		if err := i.keys.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM ingest_keys`).Scan(&left); err != nil ||
			left != 2 {
			t.Errorf("%d keys left, %v", left, err)
		}

		full, err := i.keys.sourcesWithKeys(t.Context(), 2)
		if err != nil || !full["apikey:k1"] {
			t.Fatalf("%v %v", full, err)
		}

		i.keys.overLimit.Store(&full)
		if _, err := i.Accept(t.Context(), keyed("one-more", `{}`)); fault.KindOf(err) != fault.KindLimited {
			t.Errorf("beyond the bound: %v", err)
		}
		if _, err := i.Accept(t.Context(), keyed("", `{}`)); err != nil {
			t.Errorf("without a key: %v", err)
		}
	})
}
