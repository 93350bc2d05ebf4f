package fanout

import (
	"context"
	"errors"
)

// deliver puts the source's next message on the subscriber's queue.
func (r *replay) deliver(ctx context.Context, s *replaySource, wait bool) error {
	m, room := &s.frames[0], true
	// The filter may have changed since seekNext admitted the message.
	if s.filterVersion == r.filterVersion || r.filter.matches(m, r.tree) {
		var p pushResult
		switch p, room = r.sub.pushReplayed(m); p {
		case pushNeedsWriter:
			r.needsWriter = true
		case pushRefused:
			return errTooSlow
		}

		r.sentCount++
	}

	s.advancePast(m)
	s.frames = s.frames[1:]
	if !wait {
		return nil
	}

	if !room {
		if err := r.waitForSpace(ctx); err != nil {
			return err
		}
	}

	if r.sentCount%refreshEvery == 0 {
		r.refresh()
		if r.sub.isDisconnected() {
			return errDisconnected
		}
	}

	return nil
}

// waitForSpace waits until the client's queue is half empty.
func (r *replay) waitForSpace(ctx context.Context) error {
	for room := r.sub.spaceAvailable(false); room != nil; room = r.sub.spaceAvailable(false) {
		r.schedule(ctx)
		r.releaseFrames()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}

		r.refresh()
	}

	return nil
}

// errTooSlow ends a replay of a client whose queue and socket are full.
var errTooSlow = errors.New("subscriber is too slow")

// schedule passes the subscriber to a writer if an event was pushed.
func (r *replay) schedule(ctx context.Context) {
	if r.needsWriter {
		r.f.scheduleNow(ctx, r.sub)
		r.needsWriter = false
	}
}

// trackPositions moves the subscriber's cursor to the position of the replay.
func (r *replay) trackPositions() {
	r.sub.mu.Lock()
	defer r.sub.mu.Unlock()
	if r.sub.cursorTracker == nil {
		return
	}
	for _, s := range r.sources {
		r.sub.cursorTracker.advance(s.stream.partition, s.position)
	}
}

// releaseFrames drops references to frames before a wait.
func (r *replay) releaseFrames() { r.releaseOthers(nil) }

// releaseOthers drops the references of all sources but one.
func (r *replay) releaseOthers(but *replaySource) {
	for _, s := range r.sources {
		if s != but {
			s.frames, s.upTo = nil, s.position.next
		}
	}
}
