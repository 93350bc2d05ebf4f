package origination

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// TestCallsAtOnce: a user has five concurrent calls in any state, until one ends, is not accepted by
// the platform, or has no id.
func TestCallsAtOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newLimitedTestNode(t, at, AdmissionConfig{UserCalls: 3, AccountCalls: 4}).run()
		ids := []string{d.place("1002"), d.place("1003"), d.place("1004")}
		d.platform.reportStates(ids[0], RingingUser, UserAnswered)
		d.awaitState(ids[0], UserAnswered)
		_, err := d.Originate(t.Context(), d.alice(), "1005", "")
		wantKind(t, err, fault.KindLimited)

		if f := fault.As(err); f.RetryAfter < time.Second {
			t.Errorf("retry after %s", f.RetryAfter)
		}
		if got := testutil.ToFloat64(d.admission.refused.WithLabelValues("rest", "user_calls")); got != 1 {
			t.Errorf("counted %v times", got)
		}

		d.platform.reportStates(ids[0], Ended)
		d.awaitState(ids[0], Ended)
		d.platform.refuseWith(fault.Unavailable(nil, time.Second, "away"))

		for range 5 {
			_, err := d.Originate(t.Context(), d.alice(), "1006", "")
			wantKind(t, err, fault.KindUnavailable)
		}

		d.platform.refuseWith(nil)
		d.place("1007")
		_, err = d.originateWithKey("k", "1008")
		wantKind(t, err, fault.KindLimited)
		d.platform.reportStates(ids[1], Ended)
		d.awaitState(ids[1], Ended)

		if _, err := d.originateWithKey("k", "1008"); err != nil {
			t.Errorf("the key of a refused call: %v", err)
		}
	})
}

// onRedis runs a test over miniredis, a real Redis and a Redis Cluster.
func onRedis(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	for name, options := range map[string]func(*testing.T) redis.UniversalOptions{
		"embedded": func(t *testing.T) redis.UniversalOptions {
			return redis.UniversalOptions{Addrs: []string{miniredis.RunT(t).Addr()}}
		},
		"redis": func(t *testing.T) redis.UniversalOptions {
			return redis.UniversalOptions{Addrs: []string{testservice.Redis(t)}}
		},
		"cluster": func(t *testing.T) redis.UniversalOptions {
			return redis.UniversalOptions{Addrs: testservice.RedisCluster(t), IsClusterMode: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := options(t)
			client := redis.NewUniversalClient(&with)
			t.Cleanup(func() { _ = client.Close() })
			test(t, client)
		})
	}
}

// TestCallsAtOnceInTheCluster: nodes count together, and the calls of a killed node
// stop to count when their slots expire.
func TestCallsAtOnceInTheCluster(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient) {
		prefix := fmt.Sprint("test:", time.Now().UnixNano(), ":")
		slotsOfA := NewRedisSlots(client, prefix)
		node := func(slots *RedisSlots) *Admission {
			return newTestAdmission(AdmissionConfig{UserCalls: 2, AccountCalls: 3}, slots, &auditLines{})
		}
		a, b := node(slotsOfA), node(NewRedisSlots(client, prefix))
		enter := func(n *Admission, id, user string) error {
			return n.Acquire(t.Context(), Attempt{Origin: OriginSIP, CallID: id, AccountID: "acme", UserID: user})
		}
		mustSucceed(t, enter(a, "1", "alice"))
		mustSucceed(t, enter(b, "2", "alice"))
		wantKind(t, enter(a, "3", "alice"), fault.KindLimited)
		wantKind(t, enter(b, "3", "alice"), fault.KindLimited)
		mustSucceed(t, enter(b, "4", "bob"))
		wantKind(t, enter(a, "5", "carol"), fault.KindLimited) // the account's third and last
		b.Release("4")
		b.releaseSlots(t.Context())
		mustSucceed(t, enter(a, "5", "carol"))
		a.Release("5")
		a.releaseSlots(t.Context())
		slotsOfA.ttl = 100 * time.Millisecond
		a.renewSlots(t.Context()) // for the last time: a is killed; b continues

		within(t, "the killed node's call is free", func() bool {
			b.renewSlots(t.Context())
			return enter(b, "6", "alice") == nil
		})

		b.renewSlots(t.Context())
		wantKind(t, enter(b, "7", "alice"), fault.KindLimited)
	})
}

func TestCallsAtOnceWhileRedisIsAway(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	a := newTestAdmission(AdmissionConfig{UserCalls: 2}, NewRedisSlots(client, ""), &auditLines{})
	server.SetError("LOADING")

	for i, want := range []fault.Kind{"", "", fault.KindLimited} {
		wantKind(t, a.Acquire(t.Context(), Attempt{CallID: fmt.Sprint(i), AccountID: "acme", UserID: "alice"}), want)
	}

	server.SetError("")
	a.renewSlots(t.Context())
	other := newTestAdmission(AdmissionConfig{UserCalls: 2}, NewRedisSlots(client, ""), &auditLines{})
	wantKind(t, other.Acquire(t.Context(), Attempt{CallID: "x", AccountID: "acme", UserID: "alice"}), fault.KindLimited)
}

func TestAdoptedCallsAreCounted(t *testing.T) {
	at := testdb.SQLite(t)
	dead := newLimitedTestNode(t, at, AdmissionConfig{UserCalls: 1}, singleNode).runWithoutLease()
	id := dead.place("1002")
	dead.platform.reportStates(id, RingingUser)
	dead.awaitState(id, RingingUser)
	dead.stop()
	next := newLimitedTestNode(t, at, AdmissionConfig{UserCalls: 1}, singleNode).run()
	_, err := next.Originate(t.Context(), next.alice(), "1003", "")
	wantKind(t, err, fault.KindLimited)
	next.platform.reportStates(id, Ended)
	next.awaitState(id, Ended)
	next.place("1003")
}
