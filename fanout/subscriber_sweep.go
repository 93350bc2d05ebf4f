package fanout

import (
	"context"
	"sort"
	"time"

	"trunkline/internal/retry"
)

// sweepInterval is the interval at which every subscriber is checked, so that pings,
// silence, expiry, cursors and close frames need no timers of their own.
const sweepInterval = time.Second

func (f *Fanout) sweep(ctx context.Context) {
	for now := range retry.Ticks(ctx, sweepInterval) {
		f.sweepOnce(ctx, now)
	}
}

func (f *Fanout) sweepOnce(ctx context.Context, now time.Time) {
	for _, s := range f.subscribers.listDisconnecting() {
		s.mu.Lock()
		overdue := s.closing != nil && now.After(s.closing.deadline)
		s.mu.Unlock()
		if overdue {
			f.remove(s, DisconnectBroken)
		}
	}

	all := f.subscribers.listConnected()
	positions := f.livePositions()
	var (
		woken  []*subscriber
		queued int64
		long   []*subscriber
	)
	f.sweeps++

	for _, s := range all {
		if f.disconnectOverdue(s, now) {
			continue
		}
		if s.pingDue(now, f.cfg.PingInterval) && s.pushControl(s.transport.ping()) == pushNeedsWriter {
			woken = append(woken, s)
		}
		if s.pushCursor(positions) == pushNeedsWriter {
			woken = append(woken, s)
		}

		s.mu.Lock()
		// A batch that is in several queues counts once in a sweep.
		queued += int64(s.queue.CountHeld(f.sweeps))
		if s.queue.HeldBytes() > int(f.cfg.QueueBytes)/16 {
			long = append(long, s)
		}
		s.mu.Unlock()
	}

	f.writers.ScheduleNow(ctx, woken)
	f.metrics.queued.Set(float64(queued))
	if queued > int64(f.cfg.NodeQueueBytes) {
		f.disconnectLongest(long, queued)
	}
}

// disconnectOverdue disconnects a subscriber whose token has expired or whose peer is
// silent.
func (f *Fanout) disconnectOverdue(s *subscriber, now time.Time) bool {
	if now.After(s.principal.ExpiresAt) {
		f.disconnect(s, DisconnectTokenExpired)
		return true
	}

	// The client of an event stream never sends anything.
	silent := now.Unix() - s.lastSeen.Load()
	if s.transport.answersPings() && silent >= int64(f.cfg.IdleTimeout/time.Second) {
		f.disconnect(s, DisconnectSilent)
		return true
	}

	return false
}

// pingDue spreads pings over the interval by the time of the connect.
func (s *subscriber) pingDue(now time.Time, interval time.Duration) bool {
	if s.pingAt.IsZero() {
		s.pingAt = s.connectedAt.Add(interval)
	}
	if now.Before(s.pingAt) {
		return false
	}
	s.pingAt = now.Add(interval)
	return true
}

// disconnectLongest disconnects the subscribers with the longest queues until the node
// is below its limit. If they shared memory, several sweeps may be necessary.
func (f *Fanout) disconnectLongest(long []*subscriber, queued int64) {
	bytes := make(map[*subscriber]int, len(long))
	for _, s := range long {
		s.mu.Lock()
		s.queue.CopySparseBlocks()
		bytes[s] = s.queue.HeldBytes()
		s.mu.Unlock()
	}

	sort.Slice(long, func(i, j int) bool { return bytes[long[i]] > bytes[long[j]] })
	for _, s := range long {
		if queued <= int64(f.cfg.NodeQueueBytes) {
			return
		}
		queued -= int64(bytes[s])
		f.disconnect(s, DisconnectTooSlow)
	}
}
