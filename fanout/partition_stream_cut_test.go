package fanout

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// A replay may have read what a stream begins behind before the stream has read
// anything. A cut of it must be noticed, also where the log has grown past it since.
func TestACutIsNoticedByAStreamThatHasDeliveredNothing(t *testing.T) {
	log := newMemoryLog(1)
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 40)...)
	n := startNode(t, Config{}, log, newDirectory(), newPresence(), false)
	s, err := n.openStream(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}

	log.cut(0, 20)
	log.put(0, "root", event.QueueCall, sourceOffsets(100, 200)...)
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
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 40)...)
	n := startNode(t, Config{}, log, newDirectory(), newPresence(), false)
	s, err := n.openStream(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.reader.Close()

	if s.livePosition.next != 10 {
		t.Errorf("the stream begins at offset %d", s.livePosition.next)
	}
}

// After a cut a stream waits before it reads on. A topic that is created again
// meanwhile, and grows past the stream, must be noticed.
func TestATopicCreatedAgainIsNoticedAfterACut(t *testing.T) {
	log := newMemoryLog(1)
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 40)...)
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
	log.put(0, "root", event.QueueCall, sourceOffsets(100, 200)...)
	eventually(t, "the new topic is noticed", func() bool { return n.gapCount.Load() == before+4 })
	stop()
	<-ended
}

// A stream that was at the end of a log that is cut and grows again has missed
// what took the place of what it had read.
func TestStreamNoticesALogThatGrewAfterACut(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 600)...)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "cursor=true")
	log.put(0, "root", event.QueueCall, 600)
	sub.numbers(1)
	cursor := sub.next()["cursor"].(string)
	log.cut(0, 300)
	log.put(0, "root", event.QueueCall, sourceOffsets(1000, 1800)...)

	if e := sub.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("closed with %v", e)
	}

	token := directory.token("root", nil, nil)
	if _, response, err := n.tryDial(token, "since="+cursor); err == nil || response.StatusCode != 410 {
		t.Errorf("its cursor: %v", response)
	}
}

// A log that is cut again before the stream has read on has lost records that the
// stream and its subscribers had passed.
func TestStreamNoticesASecondCutBeforeItReadsOn(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 600)...)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	sub := n.dial(t, token, "")
	log.put(0, "root", event.QueueCall, 600)
	sub.numbers(1)
	log.cut(0, 300)
	log.put(0, "root", event.QueueCall, sourceOffsets(1000, 1800)...)

	if e := sub.closed(); e.Code != DisconnectEventsLost.Code { // the stream goes on at 300, in a second
		t.Fatalf("closed with %v", e)
	}

	behind := n.dial(t, token, "since=earliest")
	behind.numbers(300)
	log.cut(0, 200)
	log.put(0, "root", event.QueueCall, sourceOffsets(2000, 2800)...)

	if e := behind.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("a client that had the first 300: closed with %v", e)
	}
}

// firstHeldLog is a log whose first reader, that of a node's stream, gets nothing
// until it is free.
type firstHeldLog struct {
	*memoryLog
	opened *atomic.Bool
	free   chan struct{}
}

func (l firstHeldLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	r := l.memoryLog.Read(cfg)
	if cfg.Compacted || l.opened.Swap(true) {
		return r
	}
	return heldReader{r, l.free}
}

// What was read ahead of a stream that has read nothing yet, and so has no leader
// epoch, may have been cut before the stream reads it.
func TestHistoryAheadOfAStreamIsReadAgain(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	held := firstHeldLog{log, &atomic.Bool{}, make(chan struct{})}
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, held, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	sub := n.dial(t, token, "")
	eventually(t, "the stream reads", held.opened.Load)
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 40)...)
	n.history.pin()
	defer n.history.unpin()

	if frames, _, err := n.history.read(t.Context(), 0, 0, kafka.AtOffset(40)); err != nil || len(frames) != 40 {
		t.Fatalf("%d frames: %v", len(frames), err)
	}

	log.cut(0, 20)
	log.put(0, "root", event.QueueCall, sourceOffsets(100, 800)...)
	close(held.free)
	want := append(rising(0, 20), rising(100, 800)...)

	for name, c := range map[string]*testClient{"live": sub, "earliest": nil} {
		if c == nil {
			eventually(t, "the stream has read all",
				func() bool { return n.followedPartitions.stream(0).liveOffset() == 720 })
			c = n.dial(t, token, "since=earliest")
		}
		if got := c.numbers(len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
