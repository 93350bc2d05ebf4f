package normalizer

import (
	"bytes"
	"context"
	"fmt"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// takeOver finds out where the one before left off. The end of the normalized
// topic has the last position that was written and its id. The group's commit
// may be behind it (it is flushed once a second) or ahead: dead letters leave
// nothing there, and a normalizer that was slow to stop may have written old
// positions again. So the ids are stepped on from the one known link over
// everything up to the commit, and work begins at the later of the two.
func (l *lane) takeOver(ctx context.Context) error {
	var first int64
	var last *kafka.Record
	err := l.persist(ctx, "taking over", func() (err error) {
		if first, _, err = l.deps.Log.Offsets(ctx, l.raw, l.Partition); err != nil {
			return err
		}
		last, err = l.deps.Log.Last(ctx, l.out, l.Partition)
		return err
	})
	if err != nil {
		return err
	}
	committed, isCommitted := l.Committed()
	l.next = first
	if isCommitted {
		l.next = committed
	}
	if last != nil {
		if err := l.readBack(last, committed, isCommitted); err != nil {
			// Not ours: somebody else writes to the topic. Ids go on from the
			// raw log alone.
			l.log.Error("the normalized topic's last record cannot be read back", "topic", l.out,
				"partition", l.Partition, "offset", last.Offset, "err", err)
		}
	}
	l.resume = max(l.resume, l.next)
	return nil
}

// readBack starts from the last normalized record.
func (l *lane) readBack(last *kafka.Record, committed int64, isCommitted bool) error {
	at, err := event.ParsePosition(string(last.Header(event.HeaderPosition)))
	if err != nil {
		return err
	}
	if at.Partition != l.Partition {
		return fmt.Errorf("it comes from partition %d", at.Partition)
	}
	l.next = at.Offset + 1
	if isCommitted {
		l.resume = max(committed, l.next)
	}
	if !l.ids {
		l.next = max(l.next, l.resume)
		return nil
	}
	l.prev, err = messageID(last.Value)
	return err
}

// messageID is the id of a channel message, which begins with it.
func messageID(message []byte) (event.ID, error) {
	rest, ok := bytes.CutPrefix(message, []byte(`{"id":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return 0, event.ErrID
	}
	return event.ParseID(string(rest[:end]))
}

// skipHole looks at why reading failed. Where the log has no sound record it
// sets the lane behind the hole and answers nil: what is lost is said and
// counted, never hidden, and the partition goes on.
func (l *lane) skipHole(err error) error {
	gap, ok := kafka.PassableGap(err)
	if !ok {
		return err
	}
	to := gap.Resume
	if gap.Restarted() {
		to = gap.First
	}
	from := max(l.next, l.resume)
	lost := max(to-from, 0)
	l.metrics.lost.WithLabelValues(l.raw).Add(float64(lost))
	l.log.Error("raw records are not in the log any more, going on behind them", "topic", l.raw,
		"partition", l.Partition, "wanted", l.next, "from", to, "lost", lost, "err", err)
	if to < l.next { // the log is shorter than what was done: it was made anew
		l.resume = to
	}
	l.next = to
	return nil
}
