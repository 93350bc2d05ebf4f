package sip_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
	"trunkline/internal/testservice"
	"trunkline/telephony/sip"
)

func redisBindings(t testing.TB) (*sip.RedisBindings, *miniredis.Miniredis) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	b, err := sip.NewRedisBindings(client, "test:")
	must(t, err)
	return b, server
}

func TestBindings(t *testing.T) {
	kinds := map[string]func(*testing.T) *sip.RedisBindings{
		"redis": func(t *testing.T) *sip.RedisBindings { b, _ := redisBindings(t); return b },
		"redis cluster": func(t *testing.T) *sip.RedisBindings {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testservice.RedisCluster(t)})
			t.Cleanup(func() { _ = client.Close() })
			b, err := sip.NewRedisBindings(client, testservice.Prefix(t))
			must(t, err)
			return b
		},
	}

	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { bindingsSuite(t, kind(t)) })
	}
}

func binding(extension, contact string, since, life time.Duration) sip.Binding {
	now := time.Now().Truncate(time.Millisecond)
	return sip.Binding{
		AOR: sip.AOR{AccountID: "acme", Extension: extension}, UserID: "u", Contact: contact,
		Source:    netip.MustParseAddrPort("192.0.2.1:5060"),
		Transport: "UDP", Since: now.Add(since), Expires: now.Add(life),
	}
}

func bindingsSuite(t *testing.T, b *sip.RedisBindings) {
	ctx := t.Context()

	desk, soft := binding("1001", "sip:1001@desk", -time.Hour, time.Minute), binding("1001", "sip:1001@soft", 0,
		time.Minute)
	other, old := binding("1002", "sip:1002@desk", 0, time.Minute), binding("1001", "sip:1001@old", 0, -time.Second)
	for _, one := range []sip.Binding{soft, desk, other, old} {
		must(t, b.Put(ctx, one))
	}

	desk.CSeq = 7
	must(t, b.Put(ctx, desk))
	found, err := b.List(ctx, desk.AOR)
	must(t, err)

	if len(found) != 2 {
		t.Fatalf("found %+v", found)
	}

	byContact := map[string]sip.Binding{found[0].Contact: found[0], found[1].Contact: found[1]}
	if got := byContact[desk.Contact]; got.CSeq != 7 || got.Source != desk.Source || !got.Expires.Equal(desk.Expires) ||
		got.AOR != desk.AOR {
		t.Errorf("found %+v, want %+v", got, desk)
	}

	gone, err := b.Expire(ctx, time.Now())
	must(t, err)
	if len(gone) != 1 || gone[0].Contact != old.Contact || gone[0].UserID != "u" {
		t.Errorf("expired %+v", gone)
	}

	for i, want := range []bool{true, false} {
		if removed, err := b.Remove(ctx, desk); err != nil || removed != want {
			t.Errorf("removing for the %d. time: %v %v", i+1, removed, err)
		}
	}

	gone, err = b.Expire(ctx, time.Now().Add(2*time.Minute))
	must(t, err)
	if len(gone) != 2 {
		t.Errorf("expired %+v", gone)
	}
	if again, err := b.Expire(ctx, time.Now().Add(2*time.Minute)); err != nil || len(again) != 0 {
		t.Errorf("expired again: %+v %v", again, err)
	}
}

func TestExpiryIsNoticedOnOneNode(t *testing.T) {
	one, server := redisBindings(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()

	two, err := sip.NewRedisBindings(client, "test:")
	must(t, err)
	for i := range 100 {
		must(t, one.Put(t.Context(), binding("1001", fmt.Sprint("sip:", i, "@x"), 0, -time.Second)))
	}

	counts := make(chan int, 2)
	for _, node := range []*sip.RedisBindings{one, two} {
		go func() {
			gone, err := node.Expire(context.Background(), time.Now())
			if err != nil {
				t.Error(err)
			}
			counts <- len(gone)
		}()
	}

	if n := <-counts + <-counts; n != 100 {
		t.Errorf("%d expiries of 100 were noticed", n)
	}
}

// failsOnce is a hook that fails a command once while armed.
type failsOnce struct {
	command string
	armed   atomic.Bool
}

func (*failsOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*failsOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *failsOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		if command.Name() == f.command && f.armed.CompareAndSwap(true, false) {
			command.SetErr(context.DeadlineExceeded)
			return context.DeadlineExceeded
		}
		return next(ctx, command)
	}
}

// TestAnExpiryIsReportedThoughACommandFails: the next look finds it.
func TestAnExpiryIsReportedThoughACommandFails(t *testing.T) {
	for _, command := range []string{"zrem", "hget", "hdel"} {
		t.Run(command, func(t *testing.T) {
			fault := &failsOnce{command: command}
			client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
			defer client.Close()

			client.AddHook(fault)
			b, err := sip.NewRedisBindings(client, "test:")
			must(t, err)
			old := binding("1001", "sip:1001@old", 0, -time.Second)
			must(t, b.Put(t.Context(), old))

			fault.armed.Store(true)
			now := time.Now()
			if gone, err := b.Expire(t.Context(), now); err == nil || len(gone) != 0 {
				t.Fatalf("expired %+v, %v", gone, err)
			}

			gone, err := b.Expire(t.Context(), now.Add(time.Second))
			must(t, err)
			if len(gone) != 1 || gone[0].Contact != old.Contact {
				t.Errorf("expired %+v", gone)
			}
		})
	}
}

func TestRedisAway(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a timeout")
	}

	b, server := redisBindings(t)
	server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	if _, err := b.List(ctx, sip.AOR{AccountID: "acme", Extension: "1"}); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("listing got %v", err)
	}
	if err := b.Put(ctx, binding("1001", "sip:x@y", 0, time.Minute)); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("putting got %v", err)
	}
}

func TestRegistrationsOfDeletedAccountsAreRemoved(t *testing.T) {
	b, server := redisBindings(t)
	ctx := t.Context()

	const each = 700 // more than one scan returns
	for i := range each {
		for _, account := range []string{"gone", "stays"} {
			one := binding(fmt.Sprint(i), fmt.Sprintf("sip:%d@desk", i), 0, time.Hour)
			one.AccountID = account
			must(t, b.Put(ctx, one))
		}
	}

	removed, err := b.RemoveAccounts(ctx, []string{"gone", "earlier"})
	if err != nil || removed != each {
		t.Errorf("%d registrations are removed: %v", removed, err)
	}

	for account, want := range map[string]int{"gone": 0, "stays": 1} {
		found, err := b.List(ctx, sip.AOR{AccountID: account, Extension: "7"})
		if err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", account, found, err)
		}
	}

	members, err := server.ZMembers("test:sip:expiry")
	if err != nil || len(members) != each {
		t.Errorf("%d registrations are left: %v", len(members), err)
	}
}
