package aisession

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/telephony/audio"
)

// tickScheduler ticks every session once per 20 ms frame on absolute deadlines. It has one wheel per core and
// uses as few of them as suffice. A wheel makes one turn in 20 ms and has a slot every 2 ms; the
// sessions of a slot share a timer.
type tickScheduler struct{ wheels []*wheel }

const (
	slotTime      = 2 * time.Millisecond
	slotsPerFrame = int(audio.FrameDuration / slotTime)
	// jitterMargin is the shortest delay from a caller's packet to its tick. It absorbs that much jitter.
	jitterMargin = 1500 * time.Microsecond
	// wheelCapacity is the load up to which new sessions are assigned to a wheel before the next one: half a core.
	wheelCapacity = 200
	// maxPacketDelay is the delay of a packet after its tick up to which the ticks are moved back to wait for
	// such packets. The jitter buffer absorbs longer delays.
	maxPacketDelay = 8 * time.Millisecond
	// minWatched is the number of packets that must all wait for a slot longer than jitterMargin before the
	// ticks are moved forward. The number doubles, up to maxWatched, each time the ticks then have to
	// be moved back.
	minWatched = 10
	maxWatched = 400
	// maxCatchUp is the delay up to which a wheel catches up. The ticks of a longer delay are skipped.
	maxCatchUp = 200 * time.Millisecond
)

// wheelSlot is a session's slot on a wheel.
type wheelSlot struct {
	wheel *wheel // set once, before any other use

	// The following fields are guarded by wheel.mu.
	slot              int  // -1 if none
	callAttached      bool // a call is attached and its packets count
	awaitsFirstPacket bool // no packet of the call has arrived
	// notBefore is the first step with a tick: that of the current turn ran before the ticks were moved back.
	notBefore      int64
	packets        int           // packets since the ticks were moved or examined
	shortestWait   time.Duration // shortest wait of these packets for their tick
	watchedPackets int           // number of packets after which the ticks may be moved forward
	movedForward   bool          // the last move was forward
}

// wheel ticks the sessions of its slots, one slot after another. A step is the time of one slot: steps are counted from
// base, and step n ticks slot n modulo slotsPerFrame.
type wheel struct {
	base   time.Time           // time of slot 0 in turn 0
	wake   chan struct{}       // signals a new session; holds at most one token
	sleep  func(time.Duration) // sleepFor, except in tests
	load   atomic.Int64        // total cost of its sessions' ticks
	buffer []byte              // read buffer of the ticks

	mu       sync.Mutex
	slots    [slotsPerFrame][]*Session
	sessions int // in all slots
}

// newTickScheduler returns a tickScheduler whose wheels wait by calling sleep.
func newTickScheduler(wheels int, base time.Time, sleep func(time.Duration)) *tickScheduler {
	t := &tickScheduler{}
	for range wheels {
		t.wheels = append(t.wheels,
			&wheel{base: base, wake: make(chan struct{}, 1), sleep: sleep, buffer: make([]byte, readBuffer)})
	}
	return t
}

// run turns the wheels until ctx ends.
func (t *tickScheduler) run(ctx context.Context) {
	var turning sync.WaitGroup
	for _, w := range t.wheels {
		turning.Go(func() { w.run(ctx) })
	}
	turning.Wait()
}

// assign chooses a new session's wheel: the first one with room, so that few timers serve many
// sessions, else the least loaded one.
func (t *tickScheduler) assign(s *Session) {
	s.schedule = wheelSlot{slot: -1, shortestWait: audio.FrameDuration, watchedPackets: minWatched}
	cost := int64(s.tickCost())

	s.schedule.wheel = t.wheels[0]
	for _, w := range t.wheels {
		if w.load.Load() < s.schedule.wheel.load.Load() {
			s.schedule.wheel = w
		}
	}

	for _, w := range t.wheels {
		if w.load.Load()+cost <= wheelCapacity {
			s.schedule.wheel = w
			break
		}
	}

	s.schedule.wheel.load.Add(cost)
}

// unassign removes a session from its wheel permanently.
func (t *tickScheduler) unassign(s *Session) {
	t.stopTicks(s)
	s.schedule.wheel.load.Add(-int64(s.tickCost()))
}

// startTicks starts a session's ticks if they have not started.
func (t *tickScheduler) startTicks(s *Session, now time.Time) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.schedule.slot < 0 {
		w.moveTo(s, w.slotFor(now))
	}
}

// setCallAttached starts or stops aligning a session's ticks to its call's packets.
func (t *tickScheduler) setCallAttached(s *Session, attached bool) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	s.schedule.callAttached, s.schedule.awaitsFirstPacket = attached, true
}

// packetArrived moves a session's ticks so that they follow the caller's packets closely. The first
// packet sets the slot; a packet that just missed its tick moves the ticks back; packets that all wait
// for long move them forward. It reports whether the ticks were moved back, in which case the packet's
// audio has already been concealed.
func (t *tickScheduler) packetArrived(s *Session, now time.Time, missed bool) (back bool) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()

	schedule := &s.schedule
	if schedule.slot < 0 || !schedule.callAttached {
		return false
	}

	// The time until the slot's next tick, in this turn or the next.
	wait := (time.Duration(schedule.slot)*slotTime - now.Sub(w.base)%audio.FrameDuration +
		audio.FrameDuration) % audio.FrameDuration
	switch {
	case schedule.awaitsFirstPacket:
		schedule.awaitsFirstPacket = false
		w.moveTo(s, w.slotFor(now))
	// FrameDuration - wait is the time since the slot's last tick.
	case missed && audio.FrameDuration-wait < maxPacketDelay:
		w.moveTo(s, w.slotFor(now))
		// The new slot follows within half a turn: its first tick would be the second for the same frame.
		schedule.notBefore = int64(now.Sub(w.base)/slotTime) + int64(slotsPerFrame)/2
		schedule.packets, schedule.shortestWait = 0, audio.FrameDuration

		if schedule.movedForward {
			schedule.movedForward, schedule.watchedPackets = false, min(2*schedule.watchedPackets, maxWatched)
		}

		return true
	default:
		schedule.shortestWait = min(schedule.shortestWait, wait)
		schedule.packets++
		if schedule.packets < schedule.watchedPackets {
			return false
		}

		forward := int((schedule.shortestWait - jitterMargin) / slotTime)
		if forward > 0 {
			w.moveTo(s, (schedule.slot-forward+slotsPerFrame)%slotsPerFrame)
			schedule.movedForward = true
		}
	}

	schedule.packets, schedule.shortestWait = 0, audio.FrameDuration
	return false
}

// stopTicks stops a session's ticks. One may still be running.
func (t *tickScheduler) stopTicks(s *Session) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeFromSlot(s)
}

// slotFor returns the slot for packets that arrive at now and every 20 ms.
func (w *wheel) slotFor(now time.Time) int {
	return int((now.Sub(w.base)+jitterMargin+slotTime-1)/slotTime) % slotsPerFrame
}

// moveTo moves a session to a slot.
func (w *wheel) moveTo(s *Session, slot int) {
	if slot == s.schedule.slot {
		return
	}

	w.removeFromSlot(s)
	s.schedule.slot = slot
	w.slots[slot] = append(w.slots[slot], s)
	w.sessions++

	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wheel) removeFromSlot(s *Session) {
	if s.schedule.slot < 0 {
		return
	}

	list := w.slots[s.schedule.slot]
	for i, session := range list {
		if session == s {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			w.slots[s.schedule.slot] = list[:len(list)-1]
			w.sessions--
			break
		}
	}

	s.schedule.slot = -1
}

// run ticks the slots in order until ctx ends.
func (w *wheel) run(ctx context.Context) {
	var due []*Session
	for step := w.currentStep(); ctx.Err() == nil; {
		if w.idle() {
			select {
			case <-ctx.Done():
			case <-w.wake:
				step = w.currentStep()
			}
			continue
		}

		deadline := w.base.Add(time.Duration(step+1) * slotTime)
		wait := time.Until(deadline)
		if wait < -maxCatchUp {
			step = w.currentStep()
			continue
		}

		for ; wait > 0; wait = time.Until(deadline) {
			w.sleep(wait)
		}

		step++
		due = w.dueSessions(step, due[:0])
		for _, s := range due {
			s.tick(deadline, w.buffer)
		}

		// The slice must not keep ended sessions.
		clear(due)
	}
}

// currentStep returns the number of steps that have passed.
func (w *wheel) currentStep() int64 { return int64(time.Since(w.base) / slotTime) }

// idle reports whether the wheel has no sessions.
func (w *wheel) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions == 0
}

// dueSessions returns the sessions to tick in a step.
func (w *wheel) dueSessions(step int64, into []*Session) []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.slots[step%int64(slotsPerFrame)] {
		if step >= s.schedule.notBefore {
			into = append(into, s)
		}
	}
	return into
}
