package kafka_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Clients that come back all at once ask for the same offsets.
func TestOffsetsAskedTogetherShareRequests(t *testing.T) {
	const partitions = 64
	c, fake, open := openFakeWith(t, partitions)
	for p := range partitions {
		produce(t, c, numbered(p, 0, p%7)...)
	}

	var lists, metadata atomic.Int32
	for _, counted := range []struct {
		key kmsg.Key
		n   *atomic.Int32
	}{{kmsg.ListOffsets, &lists}, {kmsg.Metadata, &metadata}} {
		fake.ControlKey(int16(counted.key), func(kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			counted.n.Add(1)
			return nil, nil, false
		})
	}

	before := open.Load()
	var asking sync.WaitGroup
	for range 50 {
		for p := range partitions {
			asking.Go(func() {
				first, next, err := c.Offsets(t.Context(), "t", p)
				if err != nil || first != 0 || next != int64(p%7) {
					t.Errorf("partition %d: %d to %d, %v", p, first, next, err)
				}

				if at, err := c.OffsetAt(t.Context(), "t", p, time.Now().Add(time.Hour)); err != nil ||
					at != int64(p%7) {
					t.Errorf("partition %d: %d, %v", p, at, err)
				}
				if id, err := c.TopicID(t.Context(), "t"); err != nil || id.IsZero() {
					t.Errorf("topic id %v, %v", id, err)
				}
			})
		}
	}

	asking.Wait()
	if n := lists.Load(); n > 50*partitions/10 {
		t.Errorf("%d requests for %d look-ups of offsets", n, 4*50*partitions)
	}
	if n := metadata.Load(); n > 5 {
		t.Errorf("%d metadata requests", n)
	}
	if n := open.Load() - before; n > 2 {
		t.Errorf("%d more connections", n)
	}
}
