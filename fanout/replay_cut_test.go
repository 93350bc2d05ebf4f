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

// changedLog lets a replay read once before it changes, and again after it. What its
// streams read after the change is held back until they may notice.
type changedLog struct {
	*memoryLog
	replaying atomic.Bool // readers that are opened now are of replays
	reads     atomic.Int64
	changed   chan struct{}
	notice    chan struct{}
	late      int // the partition whose stream notices late
}

func (l *changedLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	r := l.memoryLog.Read(cfg)
	switch {
	case !cfg.Compacted && l.replaying.Load():
		return replayReader{r, l}
	case !cfg.Compacted && cfg.Partition == l.late:
		return lateReader{r, l}
	}
	return r
}

type replayReader struct {
	kafka.Source
	l *changedLog
}

func (r replayReader) Read(ctx context.Context) ([]kafka.Record, error) {
	if r.l.reads.Add(1) > 1 {
		<-r.l.changed
	}
	return r.Source.Read(ctx)
}

type lateReader struct {
	kafka.Source
	l *changedLog
}

func (r lateReader) Read(ctx context.Context) ([]kafka.Record, error) {
	records, err := r.Source.Read(ctx)
	if r.l.replaying.Load() {
		select {
		case <-r.l.notice:
		case <-ctx.Done():
		}
	}
	return records, err
}

// A log may be cut, or created again, and have grown past where a stream is before
// the stream notices. A replay that goes on in what has taken the place of other
// records would leave out those before its position.
func TestAReplayEndsWhereTheLogChanged(t *testing.T) {
	for name, change := range map[string]func(*memoryLog){
		"cut":           func(l *memoryLog) { l.cut(0, 10) },
		"created again": (*memoryLog).recreate,
	} {
		for _, query := range []string{"cursor=true&since=earliest", "since=earliest"} {
			t.Run(name+" "+query, func(t *testing.T) {
				directory := newDirectory()
				log := &changedLog{memoryLog: newMemoryLog(1), changed: make(chan struct{}),
					notice: make(chan struct{})}
				log.put(0, "root", event.QueueCall, sourceOffsets(0, 1000)...)
				n := startNode(t, Config{Settings: Settings{RingBytes: 1, QueueBytes: 8 << 10}}, log, directory,
					newPresence(), false)
				token := directory.token("root", nil, nil)
				n.dial(t, token, "") // its stream reads
				log.replaying.Store(true)
				ws, _, err := n.tryDial(token, query)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = ws.Close() }()

				var got []event.ID
				since := ""
				changeOnce := sync.OnceFunc(func() {
					change(log.memoryLog)
					log.put(0, "root", event.QueueCall, sourceOffsets(10_000, 11_500)...)
					close(log.changed)
				})

				for {
					_, data, err := ws.ReadMessage()
					if err != nil {
						break
					}

					changeOnce()
					id, err := event.MessageID(data)
					if err != nil {
						since = between(data, `{"cursor":"`, `"`)
						continue
					}

					got = append(got, id)
					if query == "since=earliest" {
						since = id.String()
					}
				}

				log.mu.Lock()
				for i := range log.partitions[0] {
					if id, err := event.MessageID(log.partitions[0][i].Value); err != nil ||
						i >= 10 && slices.Contains(got, id) {
						t.Fatalf("the record at offset %d has been sent, and those from 10 on have not (%v)", i, err)
					}
				}
				log.mu.Unlock()

				close(log.notice)
				if since == "" { // the client has no cursor yet
					return
				}

				eventually(t, "the position is refused", func() bool {
					ws, response, err := n.tryDial(token, "cursor=true&since="+since)
					if err == nil {
						_ = ws.Close()
					}
					return err != nil && response != nil && response.StatusCode == 410
				})
			})
		}
	}
}

// Where a stream has not noticed that the topic was created again, its positions do
// not get into a cursor of the new log.
func TestACursorIsOfOneLog(t *testing.T) {
	directory := newDirectory()
	log := &changedLog{memoryLog: newMemoryLog(2), changed: make(chan struct{}), notice: make(chan struct{})}
	close(log.changed)

	for p := range 2 {
		log.put(p, "root", event.QueueCall, sourceOffsets(0, 100)...)
	}

	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "since=earliest").numbers(200)
	log.replaying.Store(true)
	log.recreate()

	for p := range 2 {
		log.put(p, "root", event.QueueCall, sourceOffsets(1000, 1200)...)
	}

	eventually(t, "the stream of partition 1 is in the new log", func() bool {
		return n.followedPartitions.stream(1).liveOffset() == 200
	})
	c := n.dial(t, token, "cursor=true&since=earliest")
	if e := c.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("closed with %v", e)
	}

	close(log.notice)
	eventually(t, "the stream of partition 0 is in the new log", func() bool {
		return n.followedPartitions.stream(0).liveOffset() == 200
	})
	n.dial(t, token, "cursor=true&since=earliest").numbers(400)
}
