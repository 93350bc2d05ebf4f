package drivertest

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
	"trunkline/origination/eventdriver"
)

// Driver is a driver under test.
type Driver interface {
	origination.Driver
	origination.Adopter
}

// Suite has the cases for every driver that follows calls by events.
type Suite struct {
	// StartPlatform starts a platform. connect returns a driver of it, with a wrong password if denied is
	// true.
	StartPlatform func(t *testing.T,
		p *ScriptedPlatform) (connect func(limits eventdriver.Limits, denied bool) (Driver, *Probe))
	// Calls has the numbers that the platform has scripts for, with the states of their calls.
	Calls map[string][]string
	// Talk is the number of a call in which the parties talk, Busy one that ends soon.
	Talk, Busy string
	// Events are the events of Talk in their order. Before has those that are sent before a channel
	// exists; the last of them is the first of Events.
	Events, Before []string
	// Answer is an event after the first channel and before the end of the order, HangUp the first event
	// of the call's end.
	Answer, HangUp string
}

// Limits returns short limits for tests.
func Limits() eventdriver.Limits {
	return eventdriver.Limits{
		MaxCalls:     1000,
		ReconnectMin: time.Millisecond, ReconnectMax: 10 * time.Millisecond,
		CompareEvery: 20 * time.Millisecond, GoneAfter: 30 * time.Millisecond,
	}
}

// startDriver starts a platform and a driver that is connected to it.
func (s Suite) startDriver(t *testing.T, p *ScriptedPlatform, limits eventdriver.Limits) (Driver, *Probe, *Journal) {
	t.Helper()
	d, probe := s.StartPlatform(t, p)(limits, false)
	j, _ := Follow(t, d.Follow, nil)
	probe.AwaitConnected(t)
	return d, probe, j
}

func originate(t *testing.T, d Driver, id, number string) {
	t.Helper()
	_, err := d.Originate(t.Context(), OrderTo(id, number))
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Errorf("got %v, want %s", err, kind)
	}
}

// Run runs the cases.
func (s Suite) Run(t *testing.T) {
	t.Run("hundreds of calls at once", s.manyCalls)
	t.Run("cancel at each step", s.cancel)
	t.Run("the connection breaks within an event", s.connectionBreaks)
	t.Run("Originate says why nothing was placed", s.notPlaced)
	t.Run("calls of an earlier process", s.earlierProcess)
	t.Run("calls of a process that died", s.deadProcess)
	t.Run("the platform restarts", s.restart)
	t.Run("the login is denied", s.denied)
	t.Run("a panic ends one connection", s.panics)
}

func (s Suite) manyCalls(t *testing.T) {
	limits := Limits()
	limits.CompareEvery, limits.GoneAfter = time.Second, time.Minute // the end must be found by events alone
	d, probe, j := s.startDriver(t, &ScriptedPlatform{}, limits)
	const each = 20
	var all sync.WaitGroup

	for number := range s.Calls {
		for i := range each {
			all.Go(func() {
				_, err := d.Originate(t.Context(), OrderTo(fmt.Sprintf("%s-%d", number, i), number))
				if err != nil {
					t.Error(err)
				}
			})
		}
	}

	all.Wait()
	for number, want := range s.Calls {
		for i := range each {
			id := fmt.Sprintf("%s-%d", number, i)
			j.Await(t, id, origination.Ended)
			got := j.States(id)
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", id, got, want)
			}
		}
	}

	probe.AwaitNoCalls(t)
}

func (s Suite) cancel(t *testing.T) {
	before := s.Events[:slices.Index(s.Events, s.HangUp)+1]
	for _, hold := range slices.Compact(slices.Concat(s.Before, before)) {
		t.Run("before "+hold, func(t *testing.T) {
			t.Parallel()
			p := &ScriptedPlatform{Hold: hold, Pause: 2 * time.Millisecond}
			d, probe, j := s.startDriver(t, p, Limits())
			originate(t, d, "c", s.Talk)

			if err := d.Cancel(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(s.Before, hold) {
				p.Release() // no channel existed when Cancel was called
			}

			j.Await(t, "c", origination.Ended)
			got := j.States("c")
			if !WellFormed(got) || got[len(got)-1] != origination.CauseCancelled {
				t.Errorf("got %v", got)
			}

			p.Await("all channels are gone", func() bool { return p.CountChannels() == 0 })
			p.Await("a channel is hung up", func() bool { return len(p.Killed) > 0 })
			probe.AwaitNoCalls(t)
			wantKind(t, d.Cancel(t.Context(), "c"), fault.KindNotFound)
		})
	}
}

// A connection may break within any event. The call continues on the platform; its end is reported
// once, from events or because its channels are gone.
func (s Suite) connectionBreaks(t *testing.T) {
	for i, name := range s.Events {
		for _, hold := range []string{"", s.HangUp} {
			t.Run("within "+name+", waiting before "+hold, func(t *testing.T) {
				t.Parallel()
				p := &ScriptedPlatform{Hold: hold, Cut: name}
				d, probe, j := s.startDriver(t, p, Limits())
				_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
				if fault.KindOf(err) == fault.KindUnavailable {
					return // closed before the response was read: nothing is reported
				} else if err != nil {
					t.Fatal(err)
				}

				if hold != "" && i < slices.Index(s.Events, hold) {
					// The call is bridged on the platform: the comparison after the reconnect must find
					// that.
					j.Await(t, "c", origination.Bridged)
				}

				p.Release()
				j.Await(t, "c", origination.Ended)
				got := j.States("c")
				cause := got[len(got)-1]
				if !WellFormed(got) || cause != "NORMAL_CLEARING" && cause != origination.CauseLost {
					t.Errorf("got %v", got)
				}

				probe.AwaitNoCalls(t)
			})
		}
	}
}

func (s Suite) notPlaced(t *testing.T) {
	t.Run("no connection", func(t *testing.T) {
		d, probe := s.StartPlatform(t, &ScriptedPlatform{})(Limits(), false)
		_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
		if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter == 0 {
			t.Errorf("got %v", err)
		}
		probe.AwaitNoCalls(t)
	})

	t.Run("refused", func(t *testing.T) {
		d, probe, _ := s.startDriver(t, &ScriptedPlatform{Refuse: "-ERR Permission denied"}, Limits())
		_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
		wantKind(t, err, fault.KindRefused)
		want := "call refused by the phone platform"
		if !strings.Contains(probe.Log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, probe.Log)
		}

		probe.AwaitNoCalls(t)
	})

	t.Run("the same id twice, and no room", func(t *testing.T) {
		limits := Limits()
		limits.MaxCalls = 1
		p := &ScriptedPlatform{Hold: s.Before[0]}
		d, _, j := s.startDriver(t, p, limits)
		originate(t, d, "c", s.Talk)
		_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
		wantKind(t, err, fault.KindConflict)
		_, err = d.Originate(t.Context(), OrderTo("d", s.Talk))
		wantKind(t, err, fault.KindUnavailable)
		p.Release()
		j.Await(t, "c", origination.Ended)
	})

	t.Run("the connection breaks before the answer: nothing may go on ringing", func(t *testing.T) {
		p := &ScriptedPlatform{DropOrder: true, Hold: s.Answer}
		d, probe, j := s.startDriver(t, p, Limits())
		_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
		wantKind(t, err, fault.KindUnavailable)
		p.Await("its channel is hung up", func() bool { return len(p.Killed) > 0 })
		p.Await("all channels are gone", func() bool { return p.CountChannels() == 0 })
		probe.AwaitNoCalls(t)
		got := j.States("c")
		if len(got) != 0 {
			t.Errorf("nobody knows of the call, but %v was reported", got)
		}

		wantKind(t, d.Cancel(t.Context(), "c"), fault.KindNotFound)
	})
}

// leaveCall leaves a call, named kept, to another driver.
func (s Suite) leaveCall(t *testing.T, connect func(eventdriver.Limits, bool) (Driver, *Probe)) {
	t.Helper()
	d, probe := connect(Limits(), false)
	j, stop := Follow(t, d.Follow, nil)
	probe.AwaitConnected(t)
	originate(t, d, "kept", s.Talk)
	j.Await(t, "kept", origination.Bridged)
	stop()
}

func (s Suite) earlierProcess(t *testing.T) {
	p := &ScriptedPlatform{Hold: s.HangUp}
	connect := s.StartPlatform(t, p)
	s.leaveCall(t, connect)
	d, probe := connect(Limits(), false)
	j, _ := Follow(t, d.Follow, []origination.OpenCall{
		{Order: OrderTo("kept", s.Talk), CallID: "kept", State: origination.RingingUser},
		{Order: OrderTo("lost", s.Talk), CallID: "lost", State: origination.Bridged},
		{Order: OrderTo("done", s.Talk), CallID: "done", State: origination.Ended},
		{Order: OrderTo("anonymous", s.Talk)},
	})
	j.Await(t, "lost", origination.Ended)
	j.Await(t, "kept", origination.Bridged)
	p.Release()
	j.Await(t, "kept", origination.Ended)
	got, want := j.States("kept"), []string{Answered, Dialling, Bridged, Ended, "NORMAL_CLEARING"}
	if !slices.Equal(got, want) {
		t.Errorf("kept: got %v, want %v", got, want)
	}

	got = j.States("lost")
	if !slices.Equal(got, []string{Ended, origination.CauseLost}) {
		t.Errorf("lost: got %v", got)
	}

	got = append(j.States("done"), j.States("")...)
	if len(got) != 0 {
		t.Errorf("reported %v", got)
	}

	probe.AwaitNoCalls(t)
}

func (s Suite) deadProcess(t *testing.T) {
	connect := s.StartPlatform(t, &ScriptedPlatform{Hold: s.HangUp})
	s.leaveCall(t, connect)
	limits := Limits()
	limits.CompareEvery = time.Hour // Adopt itself causes a comparison
	d, probe := connect(limits, false)
	j, _ := Follow(t, d.Follow, nil)
	probe.AwaitConnected(t)
	rest := d.Adopt(t.Context(), []origination.OpenCall{
		{Order: OrderTo("kept", s.Talk), CallID: "kept", State: origination.Accepted},
		{Order: OrderTo("lost", s.Talk), CallID: "lost", State: origination.Bridged},
	})
	if len(rest) != 0 {
		t.Errorf("left over: %v", rest)
	}

	j.Await(t, "kept", origination.Bridged)
	j.Await(t, "lost", origination.Ended)
	if err := d.Cancel(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}

	j.Await(t, "kept", origination.Ended)
	got := j.States("kept")
	if got[len(got)-1] != origination.CauseCancelled {
		t.Errorf("kept: got %v", got)
	}

	probe.AwaitNoCalls(t)
}

// A platform that restarts has lost the calls.
func (s Suite) restart(t *testing.T) {
	p := &ScriptedPlatform{Hold: s.HangUp}
	d, probe, j := s.startDriver(t, p, Limits())
	originate(t, d, "c", s.Talk)
	j.Await(t, "c", origination.Bridged)
	p.Mu.Lock()
	p.ForgetChannels()
	p.Client.Close()
	p.Mu.Unlock()

	j.Await(t, "c", origination.Ended)
	got, want := j.States("c"), []string{Ringing, Answered, Dialling, Bridged, Ended, origination.CauseLost}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	probe.AwaitNoCalls(t)
	originate(t, d, "again", s.Busy)
	p.Release()
	j.Await(t, "again", origination.Ended)
}

func (s Suite) denied(t *testing.T) {
	p := &ScriptedPlatform{}
	d, probe := s.StartPlatform(t, p)(Limits(), true)
	_, stop := Follow(t, d.Follow, nil)
	p.Await("it is tried again", func() bool { return p.Denied > 2 })
	_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
	if fault.KindOf(err) != fault.KindUnavailable || !strings.Contains(fault.As(err).Message, "rejects our login") {
		t.Errorf("got %v", err)
	}

	stop()
	text := probe.Log.String()
	if !strings.Contains(text, "advice=\"compare origination.") || strings.Contains(text, WrongPassword) {
		t.Errorf("the log has no advice, or the password:\n%s", text)
	}
}

// WrongPassword is the password that is denied.
const WrongPassword = "wrong-password"

func (s Suite) panics(t *testing.T) {
	d, probe := s.StartPlatform(t, &ScriptedPlatform{})(Limits(), false)

	ctx, cancel := context.WithCancel(t.Context())
	done, faulted, ended := make(chan error), make(chan struct{}), make(chan string, 10)
	go func() {
		first := true
		done <- d.Follow(ctx, nil, func(p origination.Progress) {
			if first {
				first = false
				close(faulted)
				panic("a fault in one report")
			}

			if p.State == origination.Ended {
				ended <- p.CallID
			}
		})
	}()

	probe.AwaitConnected(t)
	_, err := d.Originate(t.Context(), OrderTo("c", s.Talk))
	if err != nil && fault.KindOf(err) != fault.KindUnavailable {
		t.Fatal(err)
	}

	<-faulted
	Until(t, "the next connection takes a call", func() bool {
		_, err := d.Originate(t.Context(), OrderTo("next", s.Busy))
		return err == nil
	})

	for id := range ended {
		if id == "next" {
			break
		}
	}
	cancel()

	<-done
}

// OrderTo returns the order of a call to a number.
func OrderTo(id, number string) origination.Order {
	return origination.Order{
		ID: id, InteractionID: "int-" + id, AccountID: "acc", Domain: "pbx.example", UserID: "u",
		Extension: "1001", Destination: number,
	}
}
