package kafka_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

func TestGroupWaitsForKafkaAndItsTopics(t *testing.T) {
	_, b := openBoth(t)
	g := &switchedNetwork{Broker: b}
	g.set(true)
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: g.dial},
		nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	k := newCollector()
	join(t, c, k.work(c), "late")
	time.Sleep(100 * time.Millisecond)
	g.set(false)
	ensure(t, c, topics.Spec{Name: "late", Partitions: 1})
	produce(t, c, kafka.Record{Topic: "late", Value: []byte("v")})
	k.await(t, "the record", func() bool { return k.seen["v"] == 1 })
}

// While Kafka is away the work of the partitions ends; afterwards a later generation goes on where it was committed.
func TestGroupComesBackAfterAnOutage(t *testing.T) {
	t.Parallel()
	c, g := openSwitched(t)
	k := newCollector()
	leave := join(t, c, k.work(c), "t")
	produce(t, c, numbered(0, 0, 10)...)
	k.await(t, "the first ten", func() bool { return len(k.seen) == 10 })
	g.set(true)
	k.await(t, "the work to end", func() bool { return k.ended[0] > 0 && k.ended[1] > 0 }) // heartbeats fail
	g.set(false)
	produce(t, c, numbered(0, 10, 10)...)
	k.await(t, "the next ten", func() bool { return len(k.seen) == 20 })
	k.await(t, "work of a later generation", func() bool { return k.began[0] > 1 })
	produce(t, c, numbered(1, 20, 10)...)
	k.await(t, "what came after", func() bool { return len(k.seen) == 30 })
	leave()
	again := newCollector()
	produce(t, c, numbered(1, 30, 1)...)
	join(t, c, again.work(c), "t")
	again.await(t, "only what is new", func() bool { return again.seen["30"] == 1 })

	if len(again.seen) != 1 {
		t.Errorf("read again: %v", again.seen)
	}
}

// TestGroupRemovesItsFormerMember moves the coordinator away: kafka-go then joins as
// another member, and the broker would wait for the former one.
func TestGroupRemovesItsFormerMember(t *testing.T) {
	t.Parallel()
	c, fake, _ := openFake(t)

	members, left := make(chan string, 1), make(chan string, 1)
	var moved, refused atomic.Bool
	fake.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if !moved.CompareAndSwap(false, true) {
			return nil, nil, false
		}

		members <- req.(*kmsg.HeartbeatRequest).MemberID

		res := req.ResponseKind().(*kmsg.HeartbeatResponse)
		res.ErrorCode = kerr.NotCoordinator.Code
		fake.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
			res := req.ResponseKind().(*kmsg.JoinGroupResponse)
			res.ErrorCode = kerr.NotCoordinator.Code
			return res, nil, true
		})

		return res, nil, true
	})

	fake.ControlKey(int16(kmsg.LeaveGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if refused.CompareAndSwap(false, true) { // a coordinator that is not ready
			res := req.ResponseKind().(*kmsg.LeaveGroupResponse)
			res.ErrorCode = kerr.NotCoordinator.Code
			return res, nil, true
		}

		leave := req.(*kmsg.LeaveGroupRequest)
		id := leave.MemberID // of version 0 to 2
		for _, m := range leave.Members {
			id = m.MemberID
		}

		select {
		case left <- id:
		default: // the end of the test
		}

		return nil, nil, false
	})

	k := newCollector()
	join(t, c, k.work(c), "t")

	former := <-members
	select {
	case id := <-left:
		if id != former {
			t.Errorf("%q left the group, want the former member %q", id, former)
		}
	case <-time.After(patience):
		t.Fatal("nobody left the group")
	}

	k.await(t, "work of the new member", func() bool { return k.began[0] > 1 })
}

func TestGroupLeavesThoughKafkaIsAway(t *testing.T) {
	c, g := openSwitched(t)
	k := newCollector()
	leave := join(t, c, k.work(c), "t")
	k.await(t, "two partitions", func() bool { return len(k.began) == 2 })
	g.set(true)
	began := time.Now()
	leave()

	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

// Commit ignores a lower offset than that of an earlier call.
func TestCommittedOffsetNeverGoesBack(t *testing.T) {
	c, _ := openSwitched(t)
	produce(t, c, numbered(0, 0, 10)...)

	result := make(chan int64, 2)
	join(t, c, func(ctx context.Context, l *kafka.Assignment) error {
		if l.Partition == 0 {
			if _, ok := l.Committed(); ok {
				t.Error("committed before anything was")
			}

			l.Commit(7)
			l.Commit(3)
			next, _ := l.Committed()
			result <- next
		}

		<-ctx.Done()
		return ctx.Err()
	}, "t")

	if next := <-result; next != 7 {
		t.Errorf("committed %d", next)
	}
}

func TestLagIsReportedForPartitionsThatDoNotMove(t *testing.T) {
	if testing.Short() {
		t.Skip("lag is looked up every ten seconds")
	}

	t.Parallel()
	_, b := openBoth(t)
	reg := prometheus.NewRegistry()
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial},
		reg, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
	leave := join(t, c, func(ctx context.Context, l *kafka.Assignment) error {
		l.Commit(4)
		<-ctx.Done()
		return nil
	}, "t")

	produce(t, c, numbered(0, 0, 10)...)
	until(t, "a lag of six", func() bool {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}

		for _, f := range families {
			if f.GetName() == "trunkline_kafka_lag_records" {
				return f.Metric[0].GetGauge().GetValue() == 6
			}
		}

		return false
	})

	leave()
}

func TestLagOfAllPartitionsIsLookedUpInFewRequests(t *testing.T) {
	if testing.Short() {
		t.Skip("lag is looked up every ten seconds")
	}

	t.Parallel()
	const partitions = 32

	_, b := openBoth(t)
	var lookups atomic.Int64
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := b.Dial(ctx, network, address)
		return &lookupCounter{conn, &lookups}, err
	}

	reg := prometheus.NewRegistry()
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: dial}, reg,
		quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	ensure(t, c, topics.Spec{Name: "t", Partitions: partitions})
	leave := join(t, c, func(ctx context.Context, _ *kafka.Assignment) error {
		<-ctx.Done()
		return nil
	}, "t")

	until(t, "the lag of all partitions", func() bool {
		n, err := testutil.GatherAndCount(reg, "trunkline_kafka_lag_records")
		return err == nil && n == partitions
	})

	leave()
	if n := lookups.Load(); n == 0 || n >= partitions {
		t.Errorf("%d requests for the lag of %d partitions", n, partitions)
	}
}

// lookupCounter counts the ListOffsets requests of a connection. Each request is one write.
type lookupCounter struct {
	net.Conn
	lookups *atomic.Int64
}

func (c *lookupCounter) Write(p []byte) (int, error) {
	if len(p) > 6 && kmsg.Key(binary.BigEndian.Uint16(p[4:])) == kmsg.ListOffsets {
		c.lookups.Add(1)
	}
	return c.Conn.Write(p)
}

func TestGroupNeedsANameAndTopics(t *testing.T) {
	c, _ := openSwitched(t)
	for _, cfg := range []kafka.GroupConfig{{}, {Group: "g"}, {Topics: []string{"t"}}} {
		if err := c.RunGroup(t.Context(), cfg, nil); fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
