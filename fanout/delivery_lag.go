package fanout

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"time"

	"trunkline/internal/kafka"
)

// deliveryLag measures how far the delivery of a partition has been behind the log.
// Nodes share the result: it bounds the age of events in other partitions that a
// client which resumes by id may not have received.
type deliveryLag struct {
	mu         sync.Mutex
	reader     kafka.Source
	caughtUpAt time.Time     // when everything in the log was last delivered; initially when the stream was created
	worst      time.Duration // longest time from normalization to delivery
}

// setReader sets the reader that supplies Idle.
func (l *deliveryLag) setReader(r kafka.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reader = r
}

// recordDelivered records that records read at read were delivered; the first of them was
// normalized at made, if known. all: the log had no more records.
func (l *deliveryLag) recordDelivered(made time.Time, known bool, read time.Time, all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all && read.After(l.caughtUpAt) {
		l.caughtUpAt = read
	}
	if known {
		l.worst = max(l.worst, time.Since(made))
	}
}

// takeWorst returns the longest lag since the last call: of a record, or the time since the
// stream last reached the end of the log.
func (l *deliveryLag) takeWorst(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()

	// A reader that waits at the end of the log has caught up, though it delivers nothing.
	current := l.caughtUpAt
	if l.reader != nil {
		idle := l.reader.Idle()
		if idle.After(current) {
			current = idle
		}
	}

	worst := max(l.worst, now.Sub(current))
	l.worst = 0
	return worst
}

// takeWorstLag implements thisNode.
func (f *Fanout) takeWorstLag(now time.Time) (lag time.Duration, ok bool) {
	streams := f.followedPartitions.list()
	worst := max(f.accountPartitions.lag.takeWorst(now), f.accountPartitions.countLag.takeWorst(now),
		f.joinLag.takeWorst(now))
	for _, s := range streams {
		worst = max(worst, s.lag.takeWorst(now))
	}
	return worst, len(streams) > 0
}

// reportDeliveryLag stores this node's delivery lag for the other nodes.
func (c *cluster) reportDeliveryLag(ctx context.Context, now time.Time) {
	lag, ok := c.thisNode.takeWorstLag(now)
	if !ok {
		return
	}

	hour := now.Truncate(time.Hour)
	if !hour.Equal(c.worstLag.hour) {
		c.worstLag.hour, c.worstLag.lag = hour, 0
	}

	c.worstLag.lag = max(c.worstLag.lag, lag)
	if c.worstLag.lag == 0 {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()

	if err := c.presence.ReportLag(ctx, c.cfg.NodeID, hour, c.worstLag.lag); err != nil {
		c.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// hourlyLag is the worst delivery lag of this node in the current hour.
type hourlyLag struct {
	hour time.Time
	lag  time.Duration
}

var processedField = []byte(`"processed_at":`)

// processedAt returns when a message was normalized. It searches from the end:
// event.Message.Append writes processed_at after data.
func processedAt(message []byte) (time.Time, bool) {
	at := bytes.LastIndex(message, processedField)
	if at < 0 {
		return time.Time{}, false
	}

	digits := message[at+len(processedField):]
	n := 0
	for n < len(digits) && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}

	seconds, err := strconv.ParseInt(string(digits[:n]), 10, 64)
	return time.Unix(seconds, 0), err == nil
}
