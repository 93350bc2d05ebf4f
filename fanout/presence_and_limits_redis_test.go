package fanout

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"trunkline/internal/testservice"
)

// onRedis runs a suite over the embedded Redis, a real one, and a Redis Cluster.
func onRedis(t *testing.T, suite func(t *testing.T, client redis.UniversalClient, prefix string)) {
	t.Run("embedded", func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = client.Close() })
		suite(t, client, "t:")
	})

	t.Run("real", func(t *testing.T) {
		client := redis.NewClient(&redis.Options{Addr: testservice.Redis(t)})
		t.Cleanup(func() { _ = client.Close() })
		suite(t, client, testservice.Prefix(t)+":")
	})

	t.Run("cluster", func(t *testing.T) {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testservice.RedisCluster(t)})
		t.Cleanup(func() { _ = client.Close() })
		suite(t, client, testservice.Prefix(t)+":")
	})
}

func TestPresenceIsSharedAndExpires(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient, prefix string) {
		p := &RedisPresence{Client: client, Prefix: prefix}
		var many []Client
		for i := range 1203 {
			many = append(many, Client{ID: fmt.Sprint("c", i), AccountID: "a", ConnectedAt: 1, LastPing: 2})
		}

		stale := []Client{{ID: "stale"}}
		for _, step := range []struct {
			clients []Client
			whole   bool
			total   int
		}{{stale, false, 1}, {many, true, len(many)}, {many[:3], false, len(many)}} {
			if total, err := p.Publish(t.Context(), "one", step.clients, nil, step.whole); err != nil ||
				total != step.total {
				t.Fatalf("%d connections, want %d: %v", total, step.total, err)
			}
		}

		for _, others := range []struct {
			of                 string
			nodes, connections int
		}{{"two", 1, len(many)}, {"two", 1, len(many)}, {"one", 0, 0}} { // counted; from the summary
			if nodes, n, err := p.Others(t.Context(), others.of); nodes != others.nodes || n != others.connections ||
				err != nil {
				t.Errorf("others of %s: %d nodes, %d connections, %v", others.of, nodes, n, err)
			}
		}

		if _, err := p.Publish(t.Context(), "one", nil, []string{"c0", "c1"}, false); err != nil {
			t.Fatal(err)
		}

		clients, err := p.Clients(t.Context(), "two")
		if err != nil || len(clients) != len(many)-2 || !slices.Contains(clients, many[7]) {
			t.Errorf("%d clients, %v", len(clients), err)
		}

		if life := client.PTTL(t.Context(), p.summaryKey()).Val(); life > summaryTTL || life == -1 {
			t.Errorf("the summary lives %v", life)
		}

		for _, key := range []string{p.connectionsKey("one"), p.nodesKey()} {
			if life := client.PTTL(t.Context(), key).Val(); life <= 0 || life > 30*time.Second {
				t.Errorf("%s lives %v", key, life)
			}
		}

		if err := p.Leave(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		if nodes, n, err := p.Others(t.Context(), "two"); nodes != 0 || n != 0 || err != nil {
			t.Errorf("after leaving: %d nodes, %d connections, %v", nodes, n, err)
		}
	})
}

// Nobody can say how far behind a node was when what it reported is lost.
func TestDeliveryLagIsUnknownAfterRedisLostIt(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient, prefix string) {
		p := &RedisPresence{Client: client, Prefix: prefix}
		now := time.Now()

		hour := now.Truncate(time.Hour)
		report := func(node string, lag time.Duration) {
			t.Helper()
			if err := p.ReportLag(t.Context(), node, hour, lag); err != nil {
				t.Fatal(err)
			}
		}

		lag := func(from, to time.Time) (time.Duration, bool) {
			t.Helper()
			lag, known, err := p.Lag(t.Context(), from, to)
			if err != nil {
				t.Fatal(err)
			}
			return lag, known
		}

		report("slow", 40*time.Second)
		report("fast", time.Millisecond)

		later := now.Add(lagSettle + time.Second)
		for !later.Truncate(time.Hour).Equal(hour) { // the test runs at the end of an hour
			hour = later.Truncate(time.Hour)
			report("slow", 40*time.Second)
		}

		if got, known := lag(later, later); !known || got < 40*time.Second {
			t.Errorf("before the loss: %v %v", got, known)
		}

		if all, isCluster := client.(*redis.ClusterClient); isCluster {
			at, err := all.MasterForKey(t.Context(), p.lagSinceKey())
			if err != nil {
				t.Fatal(err)
			}
			client = at // the one node that loses its data
		}

		for _, key := range client.Keys(t.Context(), prefix+"*").Val() {
			client.Del(t.Context(), key)
		}

		if _, known := lag(now, now); known {
			t.Error("known although nothing is left")
		}

		report("fast", time.Millisecond) // the slow one has not come back yet, or never will
		if _, known := lag(now, now); known {
			t.Error("known by what one node reported after the loss")
		}
		if _, known := lag(now.Add(-time.Hour), now); known {
			t.Error("known for a time before the loss")
		}
		if got, known := lag(later, later); !known || got > time.Second {
			t.Errorf("a minute after the loss: %v %v", got, known)
		}
	})
}

func TestLimitsHoldAcrossNodes(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient, prefix string) {
		l := NewRedisLimits(client, prefix)
		seat := func(id, user string, age int) ConnectionLease {
			return ConnectionLease{ID: id, Since: time.UnixMilli(int64(1_000_000 + age)),
				Scopes: []Scope{{"account:a", 3}, {"user:" + user, 2}}}
		}

		take := func(node string, s ConnectionLease, replace bool, want string) {
			t.Helper()
			if full, err := l.Acquire(t.Context(), node, s, replace); err != nil || full != want {
				t.Fatalf("%s on %s: %q %v, want %q", s.ID, node, full, err, want)
			}
		}

		take("one", seat("1", "u", 9), false, "")
		take("two", seat("2", "u", 3), false, "")
		take("one", seat("3", "u", 5), false, "user")
		take("one", seat("3", "v", 5), false, "") // a refusal has taken nothing
		take("one", seat("4", "w", 6), false, "account")

		if err := l.Release(t.Context(), "one", []ConnectionLease{seat("3", "v", 5)}); err != nil {
			t.Fatal(err)
		}

		take("one", seat("4", "u", 10), true, "") // the oldest of u goes
		evicted, err := l.Renew(t.Context(), "two", []ConnectionLease{seat("2", "u", 3)})
		if err != nil || !slices.Equal(evicted, []string{"2"}) {
			t.Fatalf("evicted %v, %v", evicted, err)
		}

		if evicted, _ := l.Renew(t.Context(), "two", nil); len(evicted) != 0 {
			t.Errorf("evicted twice: %v", evicted)
		}
		if n := client.ZCard(t.Context(), l.scopeKey("user:u")).Val(); n != 2 {
			t.Errorf("user has %d places", n)
		}
		if err := l.Release(t.Context(), "two", []ConnectionLease{seat("2", "u", 3)}); err != nil { // as its node does
			t.Fatal(err)
		}

		client.Del(t.Context(), l.scopeKey("user:u")) // Redis began anew
		if _, err := l.Renew(t.Context(), "one", []ConnectionLease{seat("1", "u", 9), seat("4", "u", 10)}); err != nil {
			t.Fatal(err)
		}

		take("two", seat("5", "u", 11), false, "user")
	})
}

// heldPipelines holds each pipeline of scripts until it is released, and counts the commands of each.
type heldPipelines struct {
	began   chan int // number of commands
	release chan struct{}
}

func (heldPipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (heldPipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h heldPipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() != "evalsha" { // of the client, when it connects
			return next(ctx, cmds)
		}

		h.began <- len(cmds)
		<-h.release
		return next(ctx, cmds)
	}
}

// waitingContext tells when somebody begins to wait for its end, too.
type waitingContext struct {
	context.Context
	waits chan<- struct{}
}

func (c waitingContext) Done() <-chan struct{} {
	c.waits <- struct{}{}
	return c.Context.Done()
}

// Connections that come while Redis answers are counted by one request, also when Redis has lost the script;
// those whose client has gone away meanwhile are not counted.
func TestLeasesAreAcquiredTogether(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient, prefix string) {
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}

		held := heldPipelines{began: make(chan int), release: make(chan struct{})}
		client.AddHook(held)
		l := NewRedisLimits(client, prefix)
		lease := func(id string) ConnectionLease {
			return ConnectionLease{ID: id, Since: time.UnixMilli(1_000_000), Scopes: []Scope{{"user:u", 4}}}
		}

		results := make(chan string, 8)
		waits := make(chan struct{}, 8)
		acquire := func(ctx context.Context, id string) {
			ctx = waitingContext{ctx, waits}
			full, err := l.Acquire(ctx, "one", lease(id), false)
			results <- fmt.Sprint(full, err)
		}

		go acquire(t.Context(), "0")
		if n := <-held.began; n != 1 {
			t.Errorf("the first request counts %d connections", n)
		}
		<-waits

		gone, leave := context.WithCancel(t.Context())
		go acquire(gone, "gone")
		for i := range 5 {
			go acquire(t.Context(), fmt.Sprint(i+1))
		}
		for range 6 {
			<-waits
		}

		leave()
		<-results

		close(held.release)
		if n := <-held.began; n != 1 {
			t.Errorf("after the script was loaded, %d connections are counted again", n)
		}
		if n := <-held.began; n != 5 {
			t.Errorf("the second request counts %d connections, want the 5 that waited", n)
		}

		refused := 0
		for range 6 {
			switch got := <-results; got {
			case "<nil>":
			case "user<nil>":
				refused++
			default:
				t.Error(got)
			}
		}
		if n := client.ZCard(t.Context(), l.scopeKey("user:u")).Val(); refused != 2 || n != 4 {
			t.Errorf("%d places of 4 are taken, %d connections refused", n, refused)
		}
	})
}

// interleave runs a function behind the first command of a pipeline, where another node's command may run too
// unless the pipeline is a transaction.
type interleave func()

func (interleave) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (interleave) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (run interleave) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "multi" {
			return next(ctx, cmds)
		}
		if err := next(ctx, cmds[:1]); err != nil {
			return err
		}

		run()
		return next(ctx, cmds[1:])
	}
}

// An eviction by another node while this one takes its list is in this list or in the next one.
func TestAnEvictionDuringARenewalIsNotLost(t *testing.T) {
	address := miniredis.RunT(t).Addr()
	own, other := redis.NewClient(&redis.Options{Addr: address}), redis.NewClient(&redis.Options{Addr: address})
	t.Cleanup(func() { _, _ = own.Close(), other.Close() })

	l, others := NewRedisLimits(own, "t:"), NewRedisLimits(other, "t:")
	evict := func(id string) {
		if err := others.notifyEvicted(t.Context(), []any{"one|" + id + "|1"}); err != nil {
			t.Error(err)
		}
	}

	evict("before")
	came := 0
	own.AddHook(interleave(func() {
		came++
		evict(fmt.Sprint("during", came))
	}))

	evicted, err := l.Renew(t.Context(), "one", nil)
	if err != nil {
		t.Fatal(err)
	}

	evict("after")
	rest, err := l.Renew(t.Context(), "one", nil)
	if err != nil {
		t.Fatal(err)
	}

	left := other.LRange(t.Context(), l.evictionsKey("one"), 0, -1).Val()
	if all := slices.Concat(evicted, rest, left); len(all) != 2+came {
		t.Errorf("%d came during renewals, got %v", came, all)
	}
}

func TestConnectionLimitsOnTwoNodes(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient, prefix string) {
		log, directory := newMemoryLog(1), newDirectory()
		presence := &RedisPresence{Client: client, Prefix: prefix}
		limits := NewRedisLimits(client, prefix)
		refuse := startLimited(t, Config{NodeID: "refuse", Settings: Settings{MaxConnectionsPerUser: 2}}, log,
			directory, presence, limits)
		replace := startLimited(t,
			Config{NodeID: "replace", Settings: Settings{MaxConnectionsPerUser: 2, OnLimit: replaceOldest}}, log,
			directory, presence, limits)
		token := directory.token("root", nil, nil)
		oldest := refuse.dial(t, token, "")
		newer := replace.dial(t, token, "")

		if _, response, err := refuse.tryDial(token, ""); err == nil || response.StatusCode != 429 {
			t.Fatalf("over the limit: %v %v", response, err)
		}

		newest := replace.dial(t, token, "")
		if e := oldest.closed(); e.Code != DisconnectReplaced.Code {
			t.Errorf("the oldest: %v", e)
		}

		_ = newer.ws.Close()
		eventually(t, "a place that is left can be taken", func() bool {
			ws, _, err := refuse.tryDial(token, "")
			if err == nil {
				_ = ws.Close()
			}
			return err == nil
		})

		_ = newest
	})
}
