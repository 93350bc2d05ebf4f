package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/event"
)

// catchup feeds a subscriber what it missed, partition by partition, and hands
// each to its stream when it has reached the stream's mark.
type catchup struct {
	mu     sync.Mutex
	starts map[int]start // partitions that are not live yet
}

// start is where a subscriber begins in one partition.
type start struct {
	place
	after event.ID // messages up to this id are left out; 0: none
}

// covers says whether the catch-up still has the partition. A stream asks with
// its lock held, so the answer cannot change under it.
func (c *catchup) covers(partition int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.starts[partition]
	return ok
}

// done hands the partition to its stream; last says it was the last one.
func (c *catchup) done(partition int) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.starts, partition)
	return len(c.starts) == 0
}

// errGone ends a catch-up whose subscriber has left.
var errGone = errors.New("subscriber has left")

// catchUp runs until sub is live everywhere or gone.
func (f *Fanout) catchUp(ctx context.Context, sub *subscriber, streams []*stream, c *catchup) {
	f.metrics.replaying.Inc()
	defer f.metrics.replaying.Dec()
	for _, st := range streams {
		c.mu.Lock()
		from, ok := c.starts[st.partition]
		c.mu.Unlock()
		if !ok {
			continue
		}
		if err := f.replay(ctx, sub, st, from); err != nil {
			if errors.Is(err, errTrimmed) {
				f.send(sub, codeFault, "the log has lost what was to come")
			}
			return
		}
	}
}

// replay feeds sub one partition until it is live there.
func (f *Fanout) replay(ctx context.Context, sub *subscriber, st *stream, from start) error {
	for {
		batches, upTo, old := st.since(from.next, sub)
		switch {
		case upTo == from.next:
			return nil
		case upTo < from.next: // this node is behind the one the client comes from
			pause(ctx, behindPause)
			if sub.gone() || ctx.Err() != nil {
				return errGone
			}
		case old:
			frames, read, err := f.history.read(ctx, st.partition, from.next, upTo)
			if errors.Is(err, errTrimmed) {
				return err
			}
			if err != nil { // Kafka is away: the subscriber stays, and misses nothing
				f.metrics.streamErrors.WithLabelValues("replay").Inc()
				f.logger.Warn("a replay waits for Kafka", "partition", st.partition, "offset", from.next, "error", err)
				pause(ctx, time.Second)
				if sub.gone() || ctx.Err() != nil {
					return errGone
				}
				continue
			}
			if err := f.feed(ctx, sub, frames, &from, upTo); err != nil {
				return err
			}
			from.next = max(from.next, read)
		default:
			for _, b := range batches {
				if err := f.feed(ctx, sub, b.frames, &from, upTo); err != nil {
					return err
				}
			}
			from.next = upTo
		}
	}
}

// behindPause is how often a client that is ahead of its node looks again.
const behindPause = 20 * time.Millisecond

// since returns what sub still needs from offset on: batches of the ring up to
// the offset upTo, or old when the ring has forgotten it. When there is
// nothing, sub is live in this partition from now on, and upTo is offset; below
// offset it is where this node has come.
func (s *stream) since(offset int64, sub *subscriber) (batches []*batch, upTo int64, old bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset > s.mark.next {
		return nil, s.mark.next, false
	}
	if offset == s.mark.next {
		behind := sub.behind.Load()
		if behind.done(s.partition) {
			sub.behind.Store(nil)
		}
		return nil, offset, false
	}
	batches, ok := s.ring.from(offset)
	return batches, s.mark.next, !ok
}

// feed pushes the frames that lie in [from.next, upTo), waiting while the
// client's queue is half full.
func (f *Fanout) feed(ctx context.Context, sub *subscriber, frames []frame, from *start, upTo int64) error {
	tree := f.directory.Tree()
	woken := false
	sent := 0
	defer func() { f.metrics.replayed.Add(float64(sent)) }()
	for i := range frames {
		m := &frames[i]
		if m.offset < from.next || m.offset >= upTo {
			continue
		}
		from.next = m.offset + 1
		if m.source >= 0 && m.source <= from.source {
			continue
		}
		from.source = max(from.source, m.source)
		if m.id <= from.after || !sub.filter.Load().admits(m, tree) {
			continue
		}
		if sub.push(m) == pushWakes {
			woken = true
		}
		sent++
		for room := sub.roomFor(false); room != nil; room = sub.roomFor(false) {
			if woken {
				f.writers.now(ctx, sub)
				woken = false
			}
			select {
			case <-room:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if sent%64 == 0 && sub.gone() {
			return errGone
		}
	}
	if woken {
		f.writers.now(ctx, sub)
	}
	if sub.gone() {
		return errGone
	}
	return nil
}
