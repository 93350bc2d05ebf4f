package aisession_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"trunkline/aisession"
	"trunkline/internal/testservice"
)

func TestSessionLeasesAreKeptAndExpire(t *testing.T) {
	store := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: store.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	take := checkLeases(t, client, "x:")
	store.FastForward(2 * time.Minute) // the node that had them is gone
	if !take("d") || !take("e") {
		t.Error("expired leases count")
	}
}

func TestSessionLeasesAreKeptInARedisCluster(t *testing.T) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testservice.RedisCluster(t)})
	t.Cleanup(func() { _ = client.Close() })
	checkLeases(t, client, testservice.Prefix(t))
}

// checkLeases checks the limit of two leases, and returns a function that acquires one of the account's two leases,
// which are both held.
func checkLeases(t *testing.T, client redis.UniversalClient, prefix string) (take func(session string) bool) {
	t.Helper()
	leases := aisession.NewRedisSessionLeases(client, prefix)
	take = func(session string) bool {
		t.Helper()
		ok, err := leases.Acquire(t.Context(), "demo", session, 2)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !take("a") || !take("b") || take("c") {
		t.Error("the limit of two leases is not obeyed")
	}

	if err := leases.Renew(t.Context(), map[string]string{"a": "demo", "b": "demo", "x": "other"}); err != nil {
		t.Fatal(err)
	}
	if take("c") {
		t.Error("renewed leases do not count")
	}
	if err := leases.Release(t.Context(), "demo", "a"); err != nil {
		t.Fatal(err)
	}
	if !take("c") {
		t.Error("a released lease counts")
	}

	return take
}
