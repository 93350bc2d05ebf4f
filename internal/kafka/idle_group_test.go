package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// pipes listens for connections within the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return pipeAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return embedded.Address }

// TestAGroupAtRestAsksLittle counts the requests of a minute in which nothing happens, of a
// group with many partitions and the heartbeats of an embedded broker.
func TestAGroupAtRestAsksLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 64
		listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "t"),
			kfake.ListenFn(func(string, string) (net.Listener, error) { return listener, nil }))
		if err != nil {
			t.Fatal(err)
		}
		defer fake.Close()

		var mu sync.Mutex
		requests := map[kmsg.Key]int{}
		for _, key := range []kmsg.Key{kmsg.Heartbeat, kmsg.ListOffsets, kmsg.Metadata, kmsg.OffsetCommit} {
			fake.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
				fake.KeepControl()
				mu.Lock()
				defer mu.Unlock()
				requests[key]++
				return nil, nil, false
			})
		}

		ctx, cancel := context.WithCancel(t.Context())
		c, err := kafka.Open(ctx, kafka.Config{
			Settings: kafka.DefaultSettings(embedded.Address), Dial: listener.dial, HeartbeatInterval: 2 * time.Second,
		}, nil, quiet())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()

		running.Go(func() {
			err := c.RunGroup(ctx, kafka.GroupConfig{Group: "g", Topics: []string{"t"}},
				func(ctx context.Context, _ *kafka.Assignment) error {
					<-ctx.Done()
					return ctx.Err()
				})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})

		time.Sleep(30 * time.Second)
		mu.Lock()
		clear(requests)
		mu.Unlock()

		time.Sleep(time.Minute)
		mu.Lock()
		got := fmt.Sprint(requests)

		for key, most := range map[kmsg.Key]int{
			kmsg.Heartbeat:    31, // every 2 s
			kmsg.Metadata:     60, // for the number of partitions every 2 s, and kafka-go's own
			kmsg.ListOffsets:  14, // for the lag every 10 s: first and next offsets, however many partitions
			kmsg.OffsetCommit: 0,
		} {
			if requests[key] > most {
				t.Errorf("%d requests of the kind %s in a minute, want at most %d", requests[key], key.Name(), most)
			}
		}

		if requests[kmsg.Heartbeat] < 25 {
			t.Errorf("the member does not live: %s", got)
		}
		mu.Unlock()

		t.Log(got)
	})
}
