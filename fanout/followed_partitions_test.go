package fanout

import (
	"context"
	"sync"
	"testing"

	"trunkline/event"
)

// A replay may have read what a stream begins behind before the stream has read
// anything. A cut of it must be noticed, also where the log has grown past it since.
func TestACutIsNoticedByAStreamThatHasDeliveredNothing(t *testing.T) {
	log := newMemoryLog(1)
	log.put(0, "root", event.QueueCall, runNode(0, 40)...)
	n := startNode(t, Config{}, log, newDirectory(), newPresence(), false)
	s, err := n.openStream(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}

	log.cut(0, 20)
	log.put(0, "root", event.QueueCall, runNode(100, 200)...)
	before := n.gapCount.Load()

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()

	eventually(t, "the cut is noticed", func() bool { return n.gapCount.Load() > before })
	stop()
	<-ended
}

// cutLog is cut when its end has been looked up for the first time.
type cutLog struct {
	*memoryLog
	once *sync.Once
}

func (l cutLog) Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.memoryLog.Offsets(ctx, topic, partition)
	if topic == event.TopicEvents {
		l.once.Do(func() { l.cut(partition, 10) })
	}
	return first, next, err
}

func TestAStreamBeginsWhereACutLogEnds(t *testing.T) {
	log := cutLog{newMemoryLog(1), new(sync.Once)}
	log.put(0, "root", event.QueueCall, runNode(0, 40)...)
	n := startNode(t, Config{}, log, newDirectory(), newPresence(), false)
	s, err := n.openStream(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.reader.Close()

	if s.live.next != 10 {
		t.Errorf("the stream begins at offset %d", s.live.next)
	}
}

// After a cut a stream waits before it reads on. A topic that is created again
// meanwhile, and grows past the stream, must be noticed.
func TestATopicCreatedAgainIsNoticedAfterACut(t *testing.T) {
	log := newMemoryLog(1)
	log.put(0, "root", event.QueueCall, runNode(0, 40)...)
	n := startNode(t, Config{}, log, newDirectory(), newPresence(), false)
	s, err := n.openStream(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}

	before := n.gapCount.Load()

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()

	log.cut(0, 20)
	eventually(t, "the cut is noticed", func() bool { return n.gapCount.Load() == before+2 })
	log.recreate()
	log.put(0, "root", event.QueueCall, runNode(100, 200)...)
	eventually(t, "the new topic is noticed", func() bool { return n.gapCount.Load() == before+4 })
	stop()
	<-ended
}
