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
			i, err := New(t.Context(), DefaultSettings(), Deps{Formats: testFormats, Accounts: accountList{"acme"}, Producer: k, DB: db},
				prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return i
		})
	})
}

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

// What Kafka did not acknowledge is produced again under the same key, never
// another body.
func TestIdempotencyKeyAfterAFailure(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		away := true
		k := &fakeKafka{respond: func(context.Context) error {
			if away {
				return errors.New("away")
			}
			return nil
		}}
		i := open(k)
		if _, err := i.Accept(t.Context(), keyed("k", `{"a":1}`)); fault.KindOf(err) != fault.KindUnavailable {
			t.Fatal(err)
		}
		away = false
		if _, err := i.Accept(t.Context(), keyed("k", `{"a":2}`)); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("another body: %v", err)
		}
		for n := range 2 {
			result, err := i.Accept(t.Context(), keyed("k", `{"a":1}`))
			if err != nil || result != (Result{Accepted: 1, Replayed: n == 1}) {
				t.Errorf("%+v %v", result, err)
			}
		}
		if k.calls != 2 {
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

// A process that died between Kafka's acknowledgement and the row's completion
// leaves a lease. When it is over the body is produced again: it is then stored
// twice, as documented.
func TestIdempotencyKeyOfADeadProcess(t *testing.T) {
	onBothDatabases(t, func(t *testing.T, open func(k *fakeKafka) *Ingest) {
		k := &fakeKafka{}
		i := open(k)
		r := keyed("k", `{"a":1}`)
		if _, err := i.keys.claim(t.Context(), r.Caller.AccountID, sourceName(r.Caller), "k", digest(r.Format, []byte(`{"a":1}`))); err != nil {
			t.Fatal(err) // and never completed
		}
		var account string // by which the key is purged
		if err := i.keys.db.QueryRowContext(t.Context(), `SELECT account_id FROM ingest_keys`).Scan(&account); err != nil || account == "" || account != r.Caller.AccountID {
			t.Errorf("the key is of account %q: %v", account, err)
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := i.Accept(short, keyed("k", `{"a":1}`)); fault.KindOf(err) != fault.KindUnavailable || k.calls != 0 {
			t.Errorf("within the lease: %v, produced %d times", err, k.calls)
		}
		if _, err := i.keys.db.ExecContext(t.Context(), `UPDATE ingest_keys SET lease_until = 0`); err != nil {
			t.Fatal(err)
		}
		if result, err := i.Accept(t.Context(), keyed("k", `{"a":1}`)); err != nil || result.Replayed || k.calls != 1 {
			t.Errorf("after the lease: %+v %v, produced %d times", result, err, k.calls)
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
		if _, err := i.keys.db.ExecContext(t.Context(), `UPDATE ingest_keys SET expires_at = 0 WHERE key < '3'`); err != nil {
			t.Fatal(err)
		}
		if err := i.keys.purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := i.keys.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM ingest_keys`).Scan(&left); err != nil || left != 2 {
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
