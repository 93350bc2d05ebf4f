package aisession

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/netguard"
	"trunkline/internal/wsframe"
	"trunkline/telephony/audio"
)

// These tests run on a clock of their own, without sockets.

type emptyDeps struct{}

func (emptyDeps) Open(context.Context, string) (aiprovider.Provider, error) {
	return aiprovider.Provider{}, nil
}
func (emptyDeps) Guard(aiprovider.Provider) netguard.Guard      { return netguard.Guard{} }
func (emptyDeps) Publish(context.Context, string, []byte) error { return nil }

func newIdleService(t testing.TB) *Service {
	t.Helper()
	s, err := New(DefaultSettings(), Deps{
		Providers: emptyDeps{}, Publisher: emptyDeps{}, Announcements: &RedisAnnouncements{},
		Leases:  &RedisSessionLeases{},
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}

	s.scheduler = newTickScheduler(len(s.scheduler.wheels), time.Now(), time.Sleep)
	return s
}

func newIdleSession(t testing.TB, s *Service, encoding string) *Session {
	t.Helper()
	format, _ := aiprotocol.FormatOf(encoding)
	session, err := s.newSession(Request{
		Provider: aiprovider.Provider{Format: format}, Ingress: IngressSIP,
		Format: audio.Format{Encoding: audio.ULaw, Rate: 8000}, RTPTimestamps: true,
	})
	if err != nil {
		t.Fatal(err)
	}

	s.scheduler.assign(session)
	s.scheduler.startTicks(session, time.Now())
	return session
}

// runPacer turns the wheels until stop, which waits for them.
func runPacer(s *Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.scheduler.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// idleConnection returns a connection that receives nothing and accepts all writes.
func idleConnection(s *Session) *providerConn {
	c := newProviderConn(s, idle{}, &nonblockingConn{fd: closedFD})
	s.connection.Store(c)
	return c
}

type idle struct{ net.Conn }

func (idle) Read([]byte) (int, error)    { return 0, errWouldBlock }
func (idle) Write(b []byte) (int, error) { return len(b), nil }

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
		stop := runPacer(s)
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
		stop := runPacer(s)
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
		stop := runPacer(s)
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

func TestBackOffIsShortAtFirstAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outage{retryLimit: 10 * time.Second}
		o.recordLoss(nil)
		var tries []time.Duration

		for begun := time.Now(); o.waitForRetry(t.Context()); {
			tries = append(tries, time.Since(begun))
		}

		early := 0
		for i, at := range tries {
			if at < 2*time.Second {
				early++
			}
			if i > 0 && at-tries[i-1] > 2500*time.Millisecond {
				t.Errorf("%v without a try", at-tries[i-1])
			}
		}

		if tries[0] != 0 || early < 4 || len(tries) > 12 || tries[len(tries)-1] > 10*time.Second {
			t.Errorf("tries at %v", tries)
		}
	})
}

func TestNothingIsAllocatedForATick(t *testing.T) {
	for _, encoding := range []string{"g711_ulaw", "pcm16"} {
		s := newIdleService(t)
		session := newIdleSession(t, s, encoding)
		session.call = silent{}
		l := idleConnection(session)
		message := aiprotocol.AppendMedia(nil, make([]byte, session.request.Provider.Format.FrameBytes()))
		wire := serverFrame(wsframe.Text, true, message)

		packet, n, now := make([]byte, 160), uint32(0), time.Now()
		packet[0] = 1
		run := func() {
			session.ReceiveAudio(n*160, packet)
			n++
			l.handleBytes(wire[:n%9+1], now) // in two pieces
			l.handleBytes(wire[n%9+1:], now)
			now = now.Add(audio.FrameDuration)
			session.tick(now, nil)
		}

		for range 10 {
			run()
		}

		if got := testing.AllocsPerRun(200, run); got != 0 {
			t.Errorf("%s: %g allocations for a frame each way", encoding, got)
		}
	}
}

// silent plays nothing.
type silent struct{}

func (silent) Play([]byte)                                         {}
func (silent) SendDTMF(context.Context, byte, time.Duration) error { return nil }
func (silent) Transfer(context.Context, string) error              { return nil }
func (silent) Release(Ending)                                      {}

func TestTicksFollowACallersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newIdleService(t)
		stop := runPacer(s)
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
				stop := runPacer(s)
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
