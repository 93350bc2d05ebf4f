package aisession

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/telephony/audio"
)

// pacer ticks every session once in a frame's time, on absolute deadlines. It
// has one wheel for each core, of which it uses as few as will do: a wheel turns
// once in 20 ms and has a slot for every 2 ms, so that sessions of one slot
// share a timer.
type pacer struct{ wheels []*wheel }

const (
	slotTime      = 2 * time.Millisecond
	slotsPerFrame = int(audio.FrameDuration / slotTime)
	// slack is how long after a caller's packet its tick comes at least: as much
	// jitter costs nothing.
	slack = 1500 * time.Microsecond
	// roomy is the load up to which a wheel takes all sessions: half a core.
	wheelCapacity = 200
	// mostBack is how much after its tick a packet may come for the ticks to wait
	// for it from then on. What comes later is for the jitter buffer.
	maxLate = 8 * time.Millisecond
	// leastWatched packets, all of which waited for a slot longer than slack, make
	// the ticks come sooner. Where that was wrong it takes twice as many the next
	// time, mostWatched in the end.
	minWatched = 10
	maxWatched = 400
	// tooLate is how far behind a wheel catches up; beyond it, the ticks missed
	// are left out.
	maxBehind = 200 * time.Millisecond
)

// schedule is a session's place on a wheel.
type schedule struct {
	wheel *wheel // set once, before any other use

	// wheel.mu holds for the rest.
	slot      int           // -1: none
	call      bool          // there is one, whose packets count
	fresh     bool          // no packet of it has come
	notBefore int64         // the first step that ticks: this turn's was before the ticks were moved back
	packets   int           // since the ticks were moved, or looked at
	least     time.Duration // that one of them had to wait for its tick
	watch     int           // how many packets make the ticks come sooner
	sooner    bool          // they did, and have not been moved back since
}

type wheel struct {
	base  time.Time     // of slot 0, turn 0
	wake  chan struct{} // a session was added; holds at most one
	sleep func(time.Duration)
	load  atomic.Int64 // what its sessions' ticks cost
	read  []byte       // what a tick reads a socket into

	mu       sync.Mutex
	slots    [slotsPerFrame][]*Session
	sessions int
}

// newPacer makes a pacer whose wheels wait by sleep.
func newPacer(wheels int, base time.Time, sleep func(time.Duration)) *pacer {
	p := &pacer{}
	for range wheels {
		p.wheels = append(p.wheels, &wheel{base: base, wake: make(chan struct{}, 1), sleep: sleep, read: make([]byte, readBuffer)})
	}
	return p
}

// run turns the wheels until ctx ends.
func (p *pacer) run(ctx context.Context) {
	var turning sync.WaitGroup
	for _, w := range p.wheels {
		turning.Go(func() { w.turn(ctx) })
	}
	turning.Wait()
}

// assign gives a new session its wheel: the first that has room, so that few
// timers serve many sessions, else the one with the least to do.
func (p *pacer) assign(s *Session) {
	s.schedule = schedule{slot: -1, least: audio.FrameDuration, watch: minWatched}
	cost := int64(s.cost())
	s.schedule.wheel = p.wheels[0]
	for _, w := range p.wheels {
		if w.load.Load() < s.schedule.wheel.load.Load() {
			s.schedule.wheel = w
		}
	}
	for _, w := range p.wheels {
		if w.load.Load()+cost <= wheelCapacity {
			s.schedule.wheel = w
			break
		}
	}
	s.schedule.wheel.load.Add(cost)
}

// release takes a session from its wheel for good.
func (p *pacer) release(s *Session) {
	p.remove(s)
	s.schedule.wheel.load.Add(-int64(s.cost()))
}

// add begins a session's ticks, if they have not begun.
func (p *pacer) add(s *Session, now time.Time) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.schedule.slot < 0 {
		w.place(s, w.slotFor(now))
	}
}

// followCall begins to follow the packets of a session's call, or ends it.
func (p *pacer) followCall(s *Session, call bool) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	s.schedule.call, s.schedule.fresh = call, true
}

// packetArrived moves a session's ticks so that they come soon after the caller's
// packets, of which one has come now: the first decides, one that just missed
// its tick moves them back, and packets that all wait for long move them
// forward. It says whether the ticks were moved back, in which case the
// packet's place has been filled.
func (p *pacer) packetArrived(s *Session, now time.Time, missed bool) (back bool) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	sched := &s.schedule
	if sched.slot < 0 || !sched.call {
		return false
	}
	wait := (time.Duration(sched.slot)*slotTime - now.Sub(w.base)%audio.FrameDuration + audio.FrameDuration) % audio.FrameDuration
	switch {
	case sched.fresh:
		sched.fresh = false
		w.place(s, w.slotFor(now))
	case missed && audio.FrameDuration-wait < maxLate:
		w.place(s, w.slotFor(now))
		sched.notBefore = int64(now.Sub(w.base)/slotTime) + int64(slotsPerFrame)/2
		sched.packets, sched.least = 0, audio.FrameDuration
		if sched.sooner {
			sched.sooner, sched.watch = false, min(2*sched.watch, maxWatched)
		}
		return true
	default:
		sched.least = min(sched.least, wait)
		if sched.packets++; sched.packets < sched.watch {
			return false
		}
		if forward := int((sched.least - slack) / slotTime); forward > 0 {
			w.place(s, (sched.slot-forward+slotsPerFrame)%slotsPerFrame)
			sched.sooner = true
		}
	}
	sched.packets, sched.least = 0, audio.FrameDuration
	return false
}

// remove ends a session's ticks; one may still be under way.
func (p *pacer) remove(s *Session) {
	w := s.schedule.wheel
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(s)
}

// slotFor is the slot that serves packets that come at now, and every 20 ms.
func (w *wheel) slotFor(now time.Time) int {
	return int((now.Sub(w.base)+slack+slotTime-1)/slotTime) % slotsPerFrame
}

// place puts a session into a slot, from wherever it is.
func (w *wheel) place(s *Session, slot int) {
	if slot == s.schedule.slot {
		return
	}
	w.drop(s)
	s.schedule.slot = slot
	w.slots[slot] = append(w.slots[slot], s)
	w.sessions++
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wheel) drop(s *Session) {
	if s.schedule.slot < 0 {
		return
	}
	list := w.slots[s.schedule.slot]
	for i, one := range list {
		if one == s {
			list[i] = list[len(list)-1]
			list[len(list)-1] = nil
			w.slots[s.schedule.slot] = list[:len(list)-1]
			w.sessions--
			break
		}
	}
	s.schedule.slot = -1
}

// turn ticks slot after slot until ctx ends.
func (w *wheel) turn(ctx context.Context) {
	var due []*Session
	for step := w.now(); ctx.Err() == nil; {
		if w.idle() {
			select {
			case <-ctx.Done():
			case <-w.wake:
				step = w.now()
			}
			continue
		}
		deadline := w.base.Add(time.Duration(step+1) * slotTime)
		wait := time.Until(deadline)
		if wait < -maxBehind {
			step = w.now()
			continue
		}
		for ; wait > 0; wait = time.Until(deadline) {
			w.sleep(wait)
		}
		step++
		due = w.of(step, due[:0])
		for _, s := range due {
			s.tick(deadline, w.read)
		}
		clear(due)
	}
}

// now is the step that is under way.
func (w *wheel) now() int64 { return int64(time.Since(w.base) / slotTime) }

// idle reports that the wheel has no session.
func (w *wheel) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions == 0
}

// of is who ticks in a step.
func (w *wheel) of(step int64, into []*Session) []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.slots[step%int64(slotsPerFrame)] {
		if step >= s.schedule.notBefore {
			into = append(into, s)
		}
	}
	return into
}
