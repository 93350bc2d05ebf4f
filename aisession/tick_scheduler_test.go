package aisession

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/telephony/audio"
)

// These tests run on a clock of their own, without sockets.

// player records the times of its frames.
type player struct {
	testCall
	playing sync.Mutex
	at      []time.Time
	loud    []bool
}

// since returns the times of the last frames, at most three.
func (p *player) since() []time.Time {
	p.playing.Lock()
	defer p.playing.Unlock()
	return slices.Clone(p.at[max(0, len(p.at)-3):])
}

func (p *player) Play(frame []byte) {
	p.playing.Lock()
	defer p.playing.Unlock()
	p.at = append(p.at, time.Now())
	p.loud = append(p.loud, frame[0] != 0xff)
}

func TestFramesComeEvery20msWhateverHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdleService(t)
		stop := turnWheels(s)
		var sessions []*Session
		var players []*player

		for i := range 40 {
			time.Sleep(time.Duration(i%7) * 3 * time.Millisecond)
			session, p := newIdleSession(t, s, "g711_ulaw"), &player{}
			session.attachCall(p)
			sessions, players = append(sessions, session), append(players, p)
		}

		sessions[3].ReceiveAudio(0, make([]byte, 160)) // aligns its ticks once
		time.Sleep(10 * time.Second)
		for i, session := range sessions {
			session.detachCall()
			synctest.Wait()
			at := players[i].at
			if n := len(at); n < 500 || n > 560 {
				t.Errorf("session %d: %d frames in 10 s and a little", i, n)
			}

			for k := 2; k < len(at); k++ {
				if gap := at[k].Sub(at[k-1]); gap != 20*time.Millisecond && !(i == 3 && k < 60) {
					t.Fatalf("session %d: %v between frames %d and %d", i, gap, k-1, k)
				}
			}
		}

		stop()
	})
}

func TestATickComesSoonAfterTheCallersPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdleService(t)
		stop := turnWheels(s)
		time.Sleep(7300 * time.Microsecond)
		session, p := newIdleSession(t, s, "g711_ulaw"), &player{}
		session.attachCall(p)
		time.Sleep(1013700 * time.Microsecond)
		var worst time.Duration

		for n := range uint32(100) {
			session.ReceiveAudio(n*160, make([]byte, 160))
			came := time.Now()
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()

			if n > 2 {
				for _, at := range p.since() {
					if wait := at.Sub(came); wait >= 0 {
						worst = max(worst, wait)
						break
					}
				}
			}
		}

		if worst < jitterMargin || worst > jitterMargin+slotTime {
			t.Errorf("a packet waits up to %v", worst)
		}
		if stats := session.tracks[0].jitter.Stats(); stats.Late+stats.Skipped+stats.Repeated != 0 {
			t.Errorf("packets were lost: %+v", stats)
		}

		session.detachCall()
		stop()
	})
}

func TestABurstLastsAsLongAsItsAudio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdleService(t)
		stop := turnWheels(s)
		session, p := newIdleSession(t, s, "g711_ulaw"), &player{}
		session.attachCall(p)
		time.Sleep(time.Second)

		if dropped := session.playout.putAudio(make([]byte, 8000*30), time.Now()); dropped != 0 {
			t.Errorf("%v were dropped", dropped)
		}

		time.Sleep(time.Minute)
		session.detachCall()
		synctest.Wait()

		loud := 0
		for _, l := range p.loud {
			if l {
				loud++
			}
		}

		if loud != 1500 {
			t.Errorf("%d loud frames, want 1500", loud)
		}

		stop()
	})
}

func TestTicksFollowACallersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdleService(t)
		stop := turnWheels(s)
		session, p := newIdleSession(t, s, "g711_ulaw"), &player{}
		session.attachCall(p)

		n := uint32(0)
		send := func(packets int, every time.Duration) (worst time.Duration) {
			for range packets {
				session.ReceiveAudio(n*160, make([]byte, 160))
				n++
				came := time.Now()
				time.Sleep(every)
				synctest.Wait()

				for _, at := range p.since() {
					if !at.Before(came) {
						worst = max(worst, at.Sub(came))
						break
					}
				}
			}

			return worst
		}

		send(200, 20*time.Millisecond)
		time.Sleep(4 * time.Millisecond) // all come 4 ms later from here on
		send(10, 20*time.Millisecond)

		if worst := send(200, 20*time.Millisecond); worst > jitterMargin+slotTime {
			t.Errorf("after a move back a packet waits up to %v", worst)
		}

		time.Sleep(10 * time.Millisecond) // and now 10 ms sooner than a frame later
		send(1200, 20*time.Millisecond)
		if worst := send(200, 20*time.Millisecond); worst > jitterMargin+3*slotTime {
			t.Errorf("after a move forward a packet waits up to %v", worst)
		}

		slow := send(20000, 20*time.Millisecond+2*time.Microsecond) // 100 ppm slow, for 400 s
		if slow > audio.FrameDuration {
			t.Errorf("with a slow clock a packet waits up to %v", slow)
		}
		if stats := session.tracks[0].jitter.Stats(); stats.Late > 40 || stats.Overrun > 0 {
			t.Errorf("packets were lost: %+v", stats)
		}

		session.detachCall()
		stop()
	})
}

// A phone whose packets are now and then 5 ms late.
func TestTicksComeSoonAgainAfterALatePacket(t *testing.T) {
	for _, c := range []struct {
		name     string
		late     func(n uint32) bool
		packets  uint32
		lost     uint64        // at most
		waits    time.Duration // of the last packet, at most
		waitsNow time.Duration // of the packet 40 after the first that was late
	}{
		{"once", func(n uint32) bool { return n == 100 }, 200, 1, jitterMargin + 2*slotTime, jitterMargin + 2*slotTime},
		{"every 30th", func(n uint32) bool { return n%30 == 0 }, 3000, 6, jitterMargin + 5*time.Millisecond + slotTime,
			audio.FrameDuration},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newIdleService(t)
				stop := turnWheels(s)
				session, p := newIdleSession(t, s, "g711_ulaw"), &player{}
				session.attachCall(p)
				began, wait := time.Now(), time.Duration(0)

				for n := range c.packets {
					due := began.Add(time.Duration(n) * audio.FrameDuration)
					if c.late(n) && n > 0 {
						due = due.Add(5 * time.Millisecond)
					}

					time.Sleep(time.Until(due))
					session.ReceiveAudio(n*160, make([]byte, 160))
					time.Sleep(12 * time.Millisecond)
					synctest.Wait()

					for _, at := range p.since() {
						if !at.Before(due) {
							wait = at.Sub(due)
							break
						}
					}

					if n == 140 && wait > c.waitsNow {
						t.Errorf("0.8 s later a packet waits %v", wait)
					}
				}

				if stats := session.tracks[0].jitter.Stats(); stats.Late > c.lost || wait > c.waits {
					t.Errorf("the last packet waits %v; %+v", wait, stats)
				}

				session.detachCall()
				stop()
			})
		})
	}
}

func TestSessionsShareAWheelWhileItHasRoom(t *testing.T) {
	s := newIdleService(t)
	s.scheduler = newTickScheduler(3, time.Now(), time.Sleep)
	var sessions []*Session

	loads := func() (all [3]int64) {
		for i, w := range s.scheduler.wheels {
			all[i] = w.load.Load()
		}
		return all
	}

	for range 150 {
		sessions = append(sessions, newIdleSession(t, s, "g711_ulaw"))
	}

	if got := loads(); got != [3]int64{150, 0, 0} {
		t.Errorf("150 sessions: %v", got)
	}

	for range 75 {
		sessions = append(sessions, newIdleSession(t, s, "opus"))
	}

	if got := loads(); got[0] < wheelCapacity-opusCost || got[1] < wheelCapacity-opusCost ||
		got[2] < wheelCapacity-opusCost || got[0]+got[1]+got[2] != 750 {
		t.Errorf("with 75 of opus: %v", got)
	}

	for _, session := range sessions {
		s.scheduler.unassign(session)
	}

	if got := loads(); got != [3]int64{} {
		t.Errorf("in the end: %v", got)
	}
}
