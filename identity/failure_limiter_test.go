package identity

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"trunkline/internal/testservice"
)

func openRedisLimiter(t *testing.T, address string) *RedisLimiter {
	t.Helper()
	return newLimiterOn(t, redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true}))
}

func newLimiterOn(t *testing.T, client redis.UniversalClient) *RedisLimiter {
	t.Helper()
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return must(NewRedisLimiter(client, "test:", prometheus.NewRegistry(), slog.New(slog.DiscardHandler)))(t)
}

// forEachLimiter runs test with every limiter; pass advances the time.
func forEachLimiter(t *testing.T, test func(t *testing.T, l Limiter, pass func(time.Duration))) {
	t.Run("memory", func(t *testing.T) {
		c, l := newClock(), NewMemoryLimiter()
		l.now = c.now
		test(t, l, c.add)
	})

	t.Run("miniredis", func(t *testing.T) {
		server := miniredis.RunT(t)
		test(t, openRedisLimiter(t, server.Addr()), server.FastForward)
	})

	t.Run("redis", func(t *testing.T) {
		test(t, openRedisLimiter(t, testservice.Redis(t)), func(d time.Duration) { time.Sleep(d) })
	})

	t.Run("redis cluster", func(t *testing.T) {
		client := redis.NewClusterClient(
			&redis.ClusterOptions{Addrs: testservice.RedisCluster(t), ContextTimeoutEnabled: true})
		test(t, newLimiterOn(t, client), func(d time.Duration) { time.Sleep(d) })
	})
}

const window = 400 * time.Millisecond // with real Redis the test sleeps that long

func newLimit(t *testing.T, name string, most int) Limit {
	return Limit{Subject: subjectHash(t.Name()+time.Now().String(), name), Max: most, Window: window}
}

func TestLimiterCountsFailuresWithinAWindow(t *testing.T) {
	forEachLimiter(t, func(t *testing.T, l Limiter, pass func(time.Duration)) {
		ctx, limit := t.Context(), newLimit(t, "a", 3)
		limit.Window = time.Minute
		for i := range 3 {
			if wait := l.Wait(ctx, limit); wait != 0 {
				t.Fatalf("after %d failures: wait %s", i, wait)
			}
			if wait := l.Fail(ctx, limit); wait != 0 {
				t.Fatalf("failure %d: wait %s", i+1, wait)
			}
		}

		for range 3 { // Wait counts nothing
			if wait := l.Wait(ctx, limit); wait <= 0 || wait > limit.Window {
				t.Fatalf("used up: wait %s", wait)
			}
		}

		if wait := l.Fail(ctx, limit); wait <= 0 || wait > limit.Window {
			t.Fatalf("one too many: wait %s", wait)
		}

		limit = newLimit(t, "b", 1)
		l.Fail(ctx, limit)
		pass(window / 2)
		l.Wait(ctx, limit) // does not extend the window
		pass(window/2 + 10*time.Millisecond)

		if wait := l.Wait(ctx, limit); wait != 0 {
			t.Errorf("in the next window: wait %s", wait)
		}
		if wait := l.Fail(ctx, limit); wait != 0 {
			t.Errorf("first failure of the next window: wait %s", wait)
		}
	})
}

func TestLimiterTakesTheWorstOfSeveral(t *testing.T) {
	forEachLimiter(t, func(t *testing.T, l Limiter, _ func(time.Duration)) {
		ctx, user, address := t.Context(), newLimit(t, "user", 1), newLimit(t, "address", 2)
		other, third := newLimit(t, "other", 1), newLimit(t, "third", 1)
		for _, limit := range []*Limit{&user, &address, &other, &third} {
			limit.Window = time.Minute
		}

		l.Fail(ctx, user, address)
		if l.Wait(ctx, user, address) == 0 || l.Wait(ctx, other, address) != 0 {
			t.Error("the user alone is at the limit")
		}

		l.Fail(ctx, other, address)
		if l.Wait(ctx, third, address) == 0 || l.Wait(ctx, third) != 0 {
			t.Error("now the address is too")
		}
	})
}

func TestLimiterIsExactWhenManyFailAtOnce(t *testing.T) {
	forEachLimiter(t, func(t *testing.T, l Limiter, _ func(time.Duration)) {
		limit := newLimit(t, "a", 10)
		limit.Window = time.Minute
		var within atomic.Int32
		var group sync.WaitGroup

		for range 40 {
			group.Go(func() {
				if l.Fail(t.Context(), limit) == 0 {
					within.Add(1)
				}
			})
		}

		group.Wait()
		if within.Load() != 10 {
			t.Errorf("%d failures were within the limit", within.Load())
		}
	})
}

func TestRedisLimitersShareTheirCounts(t *testing.T) {
	address := testservice.Redis(t)
	a, b, limit := openRedisLimiter(t, address), openRedisLimiter(t, address), newLimit(t, "a", 1)
	limit.Window = time.Minute
	a.Fail(t.Context(), limit)

	if b.Wait(t.Context(), limit) == 0 {
		t.Error("one node does not know of the other's failure")
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if a.Fail(ended, limit) == 0 {
		t.Error("a client that hung up spared itself the count")
	}
	if n := testutil.ToFloat64(a.fallbacks) + testutil.ToFloat64(b.fallbacks); n != 0 {
		t.Errorf("%v fallbacks", n)
	}
}

func TestLimitsHoldWhileRedisIsAway(t *testing.T) {
	for name, away := range map[string]func(testing.TB, *testservice.Server){
		"killed": func(t testing.TB, s *testservice.Server) { s.Kill(t) },
		"frozen": func(t testing.TB, s *testservice.Server) { s.Pause(t); t.Cleanup(func() { s.Resume(t) }) },
	} {
		t.Run(name, func(t *testing.T) {
			server := testservice.OwnRedis(t)
			l := openRedisLimiter(t, server.Addr)
			limit := Limit{Subject: "a", Max: 3, Window: time.Minute}
			l.Fail(t.Context(), limit)
			away(t, server)
			begun := time.Now()

			for range 2 {
				if wait := l.Fail(t.Context(), limit); wait != 0 {
					t.Errorf("within the limit: wait %s", wait)
				}
			}

			if l.Wait(t.Context(), limit) == 0 || l.Fail(t.Context(), limit) == 0 {
				t.Error("beyond the limit, the failure before Redis went counted")
			}
			if testutil.ToFloat64(l.fallbacks) < 4 || time.Since(begun) > time.Minute {
				t.Errorf("%v fallbacks in %s", testutil.ToFloat64(l.fallbacks), time.Since(begun))
			}
		})
	}
}

func TestLimiterComesBackToRedis(t *testing.T) {
	server := miniredis.RunT(t)
	l := openRedisLimiter(t, server.Addr())
	limit := Limit{Subject: "a", Max: 1, Window: time.Minute}
	server.SetError("LOADING")
	l.Fail(t.Context(), limit)
	server.SetError("")

	waitFor(t, "half a second after its rest it counts in Redis", func() bool {
		l.skipRedisUntil.Store(0)
		return l.Fail(t.Context(), limit) == 0 // Redis has no counts, memory would refuse
	})
}

func TestMemoryLimiterIsBounded(t *testing.T) {
	c, l := newClock(), NewMemoryLimiter()
	l.now = c.now
	for i := range maxSubjects + 1000 {
		l.Fail(t.Context(), Limit{Subject: strconv.Itoa(i), Max: 1, Window: time.Minute})
	}

	if len(l.counts) != maxSubjects {
		t.Errorf("%d subjects", len(l.counts))
	}

	last := Limit{Subject: "last", Max: 1, Window: time.Minute}
	if l.Fail(t.Context(), last) != 0 || l.Wait(t.Context(), last) != time.Minute {
		t.Error("a new subject is not counted when the memory is full")
	}
}

func TestLimitsSayNothingOfWhomTheyAreAbout(t *testing.T) {
	a := LoginRequest{Username: "Alice", Domain: "Demo.Local", Address: "192.0.2.1"}.attempt().allLimits()
	b := LoginRequest{Username: "aLICE", Domain: "demo.local", Address: "::ffff:192.0.2.1"}.attempt().allLimits()
	if len(a) != 3 || !slices.Equal(a, b) || a[0].Max != 10 || a[1].Max != 10 || a[2].Max != 100 ||
		a[0].Window != 5*time.Minute {
		t.Errorf("limits %v and %v", a, b)
	}

	for _, limit := range a {
		if len(limit.Subject) != 32 || strings.Contains(limit.Subject, "192") && strings.Contains(limit.Subject, ".") {
			t.Errorf("subject %q", limit.Subject)
		}
	}

	if c := (LoginRequest{Username: "a", Domain: "ab"}).attempt().allLimits(); len(c) != 1 ||
		c[0] == (LoginRequest{Username: "ba", Domain: "a"}).attempt().allLimits()[0] {
		t.Error("without an address there is one limit, of this user alone")
	}
}
