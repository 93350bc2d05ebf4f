package asterisk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/drivertest"
)

func TestCallsInAnyTiming(t *testing.T) {
	for _, timing := range timings() {
		for _, noFilter := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, without a filter %t", timing.name, noFilter), func(t *testing.T) {
				t.Parallel()
				s := newScripted(t, &scripted{timing: timing, scripts: scripts(t), noFilter: noFilter})
				cfg := s.config()
				cfg.GoneAfter = time.Minute // events alone must tell
				d := newDriver(t, cfg)
				j, _ := follow(t, d, nil)
				for number := range calls(t) {
					if _, err := d.Originate(t.Context(), orderTo("call-"+number, number)); err != nil {
						t.Fatal(err)
					}
				}
				for number, c := range calls(t) {
					j.Await(t, "call-"+number, origination.Ended)
					if got := j.States("call-" + number); !slices.Equal(got, c.want) {
						t.Errorf("%s: got %v, want %v", number, got, c.want)
					}
				}
				noCalls(t, d)
			})
		}
	}
}

func TestHundredsOfCallsAtOnce(t *testing.T) {
	s := newScripted(t, &scripted{scripts: scripts(t)})
	cfg := s.config()
	cfg.GoneAfter, cfg.ActionTimeout = time.Minute, time.Minute
	d := newDriver(t, cfg)
	j, _ := follow(t, d, nil)
	const each = 10
	var all sync.WaitGroup
	for number := range calls(t) {
		for i := range each {
			all.Go(func() {
				if _, err := d.Originate(t.Context(), orderTo(fmt.Sprintf("%s-%d", number, i), number)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for number, c := range calls(t) {
		for i := range each {
			id := fmt.Sprintf("%s-%d", number, i)
			j.Await(t, id, origination.Ended)
			if got := j.States(id); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, want %v", id, got, c.want)
			}
		}
	}
	noCalls(t, d)
}

func TestCancelAtEachStep(t *testing.T) {
	for _, hold := range []string{"Newchannel", "Newstate", "DialState", "OriginateResponse", "DialBegin", "BridgeEnter", "Hangup"} {
		t.Run("before "+hold, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, &scripted{scripts: scripts(t), hold: hold, timing: timing{pause: time.Millisecond}})
			d := newDriver(t, s.config())
			j, _ := follow(t, d, nil)
			if _, err := d.Originate(t.Context(), orderTo("c", "2001")); err != nil {
				t.Fatal(err)
			}
			if err := d.Cancel(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
			if hold == "Newchannel" {
				s.release() // there was nothing to hang up yet
			}
			j.Await(t, "c", origination.Ended)
			if got := j.States("c"); !wellFormed(got) || got[len(got)-1] != origination.CauseCancelled {
				t.Errorf("got %v", got)
			}
			s.await("all channels are gone", func() bool { return len(s.channels) == 0 })
			s.await("a channel is hung up", func() bool { return len(s.killed) > 0 })
			noCalls(t, d)
			if err := d.Cancel(t.Context(), "c"); fault.KindOf(err) != fault.KindNotFound {
				t.Errorf("cancelling what has ended: %v", err)
			}
		})
	}
}

// A connection may break within any event. The call goes on without us; its end is reported once, from
// events or from its absence.
func TestConnectionBreaksWithinAnyEvent(t *testing.T) {
	order := []string{"Newchannel", "Newstate", "DialState", "OriginateResponse", "DialBegin", "BridgeEnter", "Hangup"}
	for _, name := range order {
		for _, hold := range []string{"", "Hangup"} {
			t.Run("within "+name+", waiting before "+hold, func(t *testing.T) {
				t.Parallel()
				s := newScripted(t, &scripted{scripts: scripts(t), hold: hold,
					cut: func(e packet) bool { return e.get("Event") == name }})
				d := newDriver(t, s.config())
				j, _ := follow(t, d, nil)
				if _, err := d.Originate(t.Context(), orderTo("c", "2001")); err != nil && fault.KindOf(err) != fault.KindUnavailable {
					t.Fatal(err)
				} else if err != nil {
					return // cut before the response was read: nothing is reported
				}
				if hold != "" && name != "Hangup" {
					// Asterisk waits in conversation: the comparison after the reconnect must tell.
					j.Await(t, "c", origination.Bridged)
				}
				s.release()
				j.Await(t, "c", origination.Ended)
				got := j.States("c")
				if cause := got[len(got)-1]; !wellFormed(got) || cause != causeNormal && cause != origination.CauseLost {
					t.Errorf("got %v", got)
				}
				noCalls(t, d)
			})
		}
	}
}

func TestOriginateSaysWhyNothingWasPlaced(t *testing.T) {
	t.Run("no connection", func(t *testing.T) {
		s := newScripted(t, &scripted{})
		d := newDriver(t, s.config())
		_, err := d.Originate(t.Context(), order("c"))
		if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter == 0 {
			t.Errorf("got %v", err)
		}
		noCalls(t, d)
	})
	t.Run("refused", func(t *testing.T) {
		s := newScripted(t, &scripted{refuse: "Permission denied"})
		d, log := newLoggedDriver(t, s.config())
		follow(t, d, nil)
		if _, err := d.Originate(t.Context(), order("c")); fault.KindOf(err) != fault.KindRefused {
			t.Errorf("got %v", err)
		}
		if want := "write = originate,call,reporting"; !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
		noCalls(t, d)
	})
	t.Run("the same id twice, and no room", func(t *testing.T) {
		s := newScripted(t, &scripted{scripts: scripts(t), hold: "Newchannel"})
		cfg := s.config()
		cfg.MaxCalls = 1
		d := newDriver(t, cfg)
		j, _ := follow(t, d, nil)
		if _, err := d.Originate(t.Context(), orderTo("c", "2001")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Originate(t.Context(), orderTo("c", "2001")); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("twice: %v", err)
		}
		if _, err := d.Originate(t.Context(), orderTo("d", "2001")); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("no room: %v", err)
		}
		s.release()
		j.Await(t, "c", origination.Ended)
	})
	t.Run("the connection breaks before the response: nothing may go on ringing", func(t *testing.T) {
		s := newScripted(t, &scripted{scripts: scripts(t), mute: true, hold: "OriginateResponse"})
		d := newDriver(t, s.config())
		j, _ := follow(t, d, nil)
		if _, err := d.Originate(t.Context(), orderTo("c", "2001")); fault.KindOf(err) != fault.KindUnavailable {
			t.Fatalf("got %v", err)
		}
		s.await("its channel is hung up", func() bool { return len(s.killed) > 0 })
		s.await("all channels are gone", func() bool { return len(s.channels) == 0 })
		noCalls(t, d)
		if got := j.States("c"); len(got) != 0 {
			t.Errorf("nobody knows of the call, but %v was reported", got)
		}
		if err := d.Cancel(t.Context(), "c"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("cancelling it: %v", err)
		}
	})
}

func TestCallsOfAnEarlierProcess(t *testing.T) {
	s := newScripted(t, &scripted{scripts: scripts(t), hold: "Hangup"})
	first := newDriver(t, s.config())
	j, stop := follow(t, first, nil)
	if _, err := first.Originate(t.Context(), orderTo("kept", "2001")); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "kept", origination.Bridged)
	stop()
	second := newDriver(t, s.config())
	j, _ = follow(t, second, []origination.Open{
		{Order: orderTo("kept", "2001"), CallID: "kept", State: origination.RingingUser},
		{Order: orderTo("lost", "2001"), CallID: "lost", State: origination.Bridged},
		{Order: orderTo("done", "2001"), CallID: "done", State: origination.Ended},
		{Order: orderTo("anonymous", "2001")},
	})
	j.Await(t, "lost", origination.Ended)
	j.Await(t, "kept", origination.Bridged)
	s.release()
	j.Await(t, "kept", origination.Ended)
	if got, want := j.States("kept"), []string{answered, dialling, joined, over, causeNormal}; !slices.Equal(got, want) {
		t.Errorf("kept: got %v, want %v", got, want)
	}
	if got := j.States("lost"); !slices.Equal(got, []string{over, origination.CauseLost}) {
		t.Errorf("lost: got %v", got)
	}
	if got := append(j.States("done"), j.States("")...); len(got) != 0 {
		t.Errorf("reported %v", got)
	}
	noCalls(t, second)
}

func TestCallsOfAProcessThatDied(t *testing.T) {
	s := newScripted(t, &scripted{scripts: scripts(t), hold: "Hangup"})
	first := newDriver(t, s.config())
	j, stop := follow(t, first, nil)
	if _, err := first.Originate(t.Context(), orderTo("kept", "2001")); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "kept", origination.Bridged)
	stop()
	cfg := s.config()
	cfg.AuditEvery = time.Hour // the adoption itself leads to a comparison
	second := newDriver(t, cfg)
	j, _ = follow(t, second, nil)
	rest := second.Adopt(t.Context(), []origination.Open{
		{Order: orderTo("kept", "2001"), CallID: "kept", State: origination.Accepted},
		{Order: orderTo("lost", "2001"), CallID: "lost", State: origination.Bridged},
	})
	if len(rest) != 0 {
		t.Errorf("left over: %v", rest)
	}
	j.Await(t, "kept", origination.Bridged)
	j.Await(t, "lost", origination.Ended)
	if err := second.Cancel(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "kept", origination.Ended)
	if got := j.States("kept"); got[len(got)-1] != origination.CauseCancelled {
		t.Errorf("kept: got %v", got)
	}
	noCalls(t, second)
}

// An Asterisk that restarts has none of the calls any more.
func TestAsteriskRestarts(t *testing.T) {
	s := newScripted(t, &scripted{scripts: scripts(t), hold: "Hangup"})
	d := newDriver(t, s.config())
	j, _ := follow(t, d, nil)
	if _, err := d.Originate(t.Context(), orderTo("c", "2001")); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "c", origination.Bridged)
	s.mu.Lock()
	clear(s.channels)
	s.client.Close()
	s.mu.Unlock()
	j.Await(t, "c", origination.Ended)
	if got, want := j.States("c"), []string{ringing, answered, dialling, joined, over, origination.CauseLost}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	noCalls(t, d)
	if _, err := d.Originate(t.Context(), orderTo("again", "2004")); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	s.release()
	j.Await(t, "again", origination.Ended)
}

func TestWrongSecret(t *testing.T) {
	s := newScripted(t, &scripted{})
	cfg := s.config()
	cfg.Secret = "wrong"
	d, log := newLoggedDriver(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Follow(ctx, nil, func(origination.Progress) {}) }()
	s.await("it is tried again", func() bool { return s.denied > 2 })
	drivertest.Until(t, "the reason is known", func() bool { return d.away != nil }, &d.mu)
	_, err := d.Originate(t.Context(), order("c"))
	if fault.KindOf(err) != fault.KindUnavailable || !strings.Contains(fault.As(err).Message, "rejects our login") {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Follow: %v", err)
	}
	for _, want := range []string{"manager.conf", "origination.asterisk.username and .secret"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), string(cfg.Secret)) {
		t.Error("the log has the secret")
	}
}

// A user that may not list channels cannot follow calls: the log says which privilege it lacks.
func TestWithoutThePrivilegeReporting(t *testing.T) {
	s := newScripted(t, &scripted{noList: true})
	d, log := newLoggedDriver(t, s.config())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Follow(ctx, nil, func(origination.Progress) {}) }()
	s.await("the log says why", func() bool { return strings.Contains(log.String(), "write = originate,call,reporting") })
	cancel()
	<-done
}

func TestAPanicEndsOneConnection(t *testing.T) {
	s := newScripted(t, &scripted{scripts: scripts(t)})
	d := newDriver(t, s.config())
	ctx, cancel := context.WithCancel(t.Context())
	done, faulted, ended := make(chan error), false, make(chan string, 10)
	go func() {
		done <- d.Follow(ctx, nil, func(p origination.Progress) {
			if !faulted {
				faulted = true
				panic("a fault in one report")
			}
			if p.State == origination.Ended {
				ended <- p.CallID
			}
		})
	}()
	connected(t, d)
	if _, err := d.Originate(t.Context(), orderTo("c", "2001")); err != nil && fault.KindOf(err) != fault.KindUnavailable {
		t.Fatal(err)
	}
	drivertest.Until(t, "the driver is connected again", func() bool { return d.epoch > 1 && d.conn != nil }, &d.mu)
	for { // the next connection may not be there yet
		if _, err := d.Originate(t.Context(), orderTo("next", "2004")); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for id := range ended {
		if id == "next" {
			break
		}
	}
	cancel()
	<-done
}
