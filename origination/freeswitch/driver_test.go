package freeswitch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
)

// sessions are the captured calls, by the number that is dialled for each, with
// what must be reported when every event comes in its place.
var sessions = map[string]struct {
	file string
	want []string
}{
	"2001": {"talk", []string{ringing, answered, dialling, joined, over, "NORMAL_CLEARING"}},
	"2002": {"short_talk", []string{ringing, answered, dialling, joined, over, "NORMAL_CLEARING"}},
	"2003": {"early_media", []string{ringing, answered, dialling, joined, over, "ORIGINATOR_CANCEL"}},
	"2004": {"busy", []string{ringing, answered, dialling, over, "USER_BUSY"}},
	"2005": {"destination_no_answer", []string{ringing, answered, dialling, over, "NO_ANSWER"}},
	"2006": {"owner_no_answer", []string{ringing, over, "NO_ANSWER"}},
	"2007": {"owner_absent", []string{over, "SUBSCRIBER_ABSENT"}},
	"2009": {"owner_hangs_up_while_dialling", []string{ringing, answered, dialling, over, "ORIGINATOR_CANCEL"}},
	"2010": {"owner_rejects", []string{ringing, over, "USER_BUSY"}},
	"2011": {"destination_rejects", []string{ringing, answered, dialling, over, "USER_BUSY"}},
	"2008": {"owner_cancelled_while_dialling", []string{ringing, answered, dialling, over, "ORIGINATOR_CANCEL"}},
}

func allSessions(t *testing.T) map[string]session {
	scripts := make(map[string]session)
	for number, s := range sessions {
		scripts[number] = load(t, s.file)
	}
	return scripts
}

func orderTo(id, number string) origination.Order {
	o := order(id)
	o.Destination = number
	return o
}

// wellFormed says whether the states rise and end once, with a cause.
func wellFormed(states []string) bool {
	last := 0
	for i, s := range states {
		if s == over {
			return i == len(states)-2
		}
		r, ok := rank[origination.State(s)]
		if !ok || r <= last {
			return false
		}
		last = r
	}
	return false
}

func TestCapturedSessionsInAnyTiming(t *testing.T) {
	scripts := allSessions(t)
	for _, timing := range timings() {
		t.Run(timing.name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, &scripted{timing: timing, scripts: scripts})
			d := newDriver(t, s.config())
			j, _ := follow(t, d, nil)
			for number := range sessions {
				if _, err := d.Originate(t.Context(), orderTo("call-"+number, number)); err != nil {
					t.Fatal(err)
				}
			}
			for number, session := range sessions {
				j.Await(t, "call-"+number, origination.Ended)
				got, want := j.States("call-"+number), session.want
				switch {
				case timing.order == nil && !slices.Equal(got, want):
					t.Errorf("%s: got %v, want %v", session.file, got, want)
				case !wellFormed(got) || got[len(got)-1] != want[len(want)-1]:
					t.Errorf("%s: got %v, want the end of %v", session.file, got, want)
				case slices.Contains(got, joined) != slices.Contains(want, joined):
					t.Errorf("%s: got %v, want %v", session.file, got, want)
				}
			}
			noCalls(t, d)
		})
	}
}

func TestHundredsOfCallsAtOnce(t *testing.T) {
	s := newScripted(t, &scripted{timing: timing{order: shuffled(1, 6)}, scripts: allSessions(t)})
	cfg := s.config()
	// The race detector is slow, and the switch has much to write.
	cfg.CommandTimeout, cfg.RingUser, cfg.GoneAfter = 20*time.Second, 30*time.Second, 5*time.Second
	d := newDriver(t, cfg)
	j, _ := follow(t, d, nil)
	var all sync.WaitGroup
	for number := range sessions {
		for i := range 40 {
			all.Go(func() {
				if _, err := d.Originate(t.Context(), orderTo(fmt.Sprintf("%s-%d", number, i), number)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	for number, session := range sessions {
		for i := range 40 {
			id := fmt.Sprintf("%s-%d", number, i)
			j.Await(t, id, origination.Ended)
			if got := j.States(id); !wellFormed(got) || got[len(got)-1] != session.want[len(session.want)-1] {
				t.Errorf("%s: got %v, want the end of %v", session.file, got, session.want)
			}
		}
	}
	noCalls(t, d)
}

func TestCancelAtEachStep(t *testing.T) {
	scripts := allSessions(t)
	for _, hold := range []string{"CHANNEL_OUTGOING", "CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_ANSWER",
		"BACKGROUND_JOB", "CHANNEL_EXECUTE", "CHANNEL_BRIDGE", "CHANNEL_HANGUP"} {
		t.Run("before "+hold, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, &scripted{scripts: scripts, hold: hold, timing: timing{pause: 3 * time.Millisecond}})
			d := newDriver(t, s.config())
			j, _ := follow(t, d, nil)
			if _, err := d.Originate(t.Context(), orderTo("c", "2002")); err != nil {
				t.Fatal(err)
			}
			if err := d.Cancel(t.Context(), "c"); err != nil {
				t.Fatal(err)
			}
			if hold == "CHANNEL_OUTGOING" || hold == "CHANNEL_CREATE" {
				s.release() // there was nothing to kill yet
			}
			j.Await(t, "c", origination.Ended)
			if got := j.States("c"); !wellFormed(got) || got[len(got)-1] != causeCancelled {
				t.Errorf("got %v", got)
			}
			s.await("all channels are gone", func() bool { return len(s.channels) == 0 })
			s.await("a channel is killed", func() bool { return len(s.killed) > 0 })
			noCalls(t, d)
			if err := d.Cancel(t.Context(), "c"); fault.KindOf(err) != fault.KindNotFound {
				t.Errorf("cancelling what has ended: %v", err)
			}
		})
	}
}

// A connection may break within any event. The call goes on without us; its end
// is reported once, from events or from its absence.
func TestConnectionBreaksWithinAnyEvent(t *testing.T) {
	scripts := allSessions(t)
	for _, name := range []string{"CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_ANSWER", "BACKGROUND_JOB", "CHANNEL_BRIDGE",
		"CHANNEL_HANGUP", "CHANNEL_DESTROY"} {
		for _, hold := range []string{"", "CHANNEL_HANGUP"} {
			t.Run("within "+name+", waiting before "+hold, func(t *testing.T) {
				t.Parallel()
				s := newScripted(t, &scripted{scripts: scripts, hold: hold,
					cut: func(e told) bool { return e["Event-Name"] == name }})
				d := newDriver(t, s.config())
				j, _ := follow(t, d, nil)
				if _, err := d.Originate(t.Context(), orderTo("c", "2002")); err != nil && fault.KindOf(err) != fault.KindUnavailable {
					t.Fatal(err)
				}
				if hold != "" && rankOf(name) < rankOf(hold) {
					// The switch waits in conversation: the look after the
					// reconnect must tell.
					j.Await(t, "c", origination.Bridged)
					s.release()
				}
				s.release()
				j.Await(t, "c", origination.Ended)
				got := j.States("c")
				if cause := got[len(got)-1]; !wellFormed(got) || cause != causeNormal && cause != causeUnknown {
					t.Errorf("got %v", got)
				}
				noCalls(t, d)
			})
		}
	}
}

func rankOf(event string) int {
	return slices.Index([]string{"CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_ANSWER", "BACKGROUND_JOB", "CHANNEL_BRIDGE",
		"CHANNEL_HANGUP", "CHANNEL_DESTROY"}, event)
}

func TestOriginateSaysWhyNothingWasPlaced(t *testing.T) {
	scripts := allSessions(t)
	t.Run("no connection", func(t *testing.T) {
		d := newDriver(t, defaults())
		_, err := d.Originate(t.Context(), order("c"))
		if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter == 0 {
			t.Errorf("got %v", err)
		}
		noCalls(t, d)
	})
	t.Run("refused", func(t *testing.T) {
		s := newScripted(t, &scripted{refuse: "-ERR permission denied"})
		d := newDriver(t, s.config())
		follow(t, d, nil)
		if _, err := d.Originate(t.Context(), order("c")); fault.KindOf(err) != fault.KindRefused {
			t.Errorf("got %v", err)
		}
		noCalls(t, d)
	})
	t.Run("the same id twice, and no room", func(t *testing.T) {
		s := newScripted(t, &scripted{scripts: scripts, hold: "CHANNEL_CREATE"})
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
	t.Run("the connection breaks before the reply: nothing may go on ringing", func(t *testing.T) {
		s := newScripted(t, &scripted{scripts: scripts, mute: true, hold: "CHANNEL_ANSWER"})
		d := newDriver(t, s.config())
		j, _ := follow(t, d, nil)
		if _, err := d.Originate(t.Context(), orderTo("c", "2001")); fault.KindOf(err) != fault.KindUnavailable {
			t.Fatalf("got %v", err)
		}
		s.await("its channel is killed", func() bool { return len(s.killed) > 0 })
		s.await("all channels are gone", func() bool { return len(s.channels) == 0 })
		noCalls(t, d)
		if got := j.States("c"); len(got) != 0 {
			t.Errorf("nobody knows of the call, yet %v was reported", got)
		}
		if err := d.Cancel(t.Context(), "c"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("cancelling it: %v", err)
		}
	})
}

func TestCallsOfAnEarlierProcess(t *testing.T) {
	s := newScripted(t, &scripted{scripts: allSessions(t), hold: "CHANNEL_HANGUP"})
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
	if got := j.States("lost"); !slices.Equal(got, []string{over, causeUnknown}) {
		t.Errorf("lost: got %v", got)
	}
	if got := append(j.States("done"), j.States("")...); len(got) != 0 {
		t.Errorf("reported %v", got)
	}
	noCalls(t, second)
}

func TestCallsOfAProcessThatDied(t *testing.T) {
	s := newScripted(t, &scripted{scripts: allSessions(t), hold: "CHANNEL_HANGUP"})
	first := newDriver(t, s.config())
	j, stop := follow(t, first, nil)
	if _, err := first.Originate(t.Context(), orderTo("kept", "2001")); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "kept", origination.Bridged)
	stop()
	second := newDriver(t, s.config())
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
	s.release()
	j.Await(t, "kept", origination.Ended)
	noCalls(t, second)
}

func TestSwitchThatDoesNotShowItsChannels(t *testing.T) {
	s := newScripted(t, &scripted{scripts: allSessions(t), hold: "CHANNEL_HANGUP", blind: true})
	d := newDriver(t, s.config())
	j, _ := follow(t, d, nil)
	for _, id := range []string{"a", "b"} {
		if _, err := d.Originate(t.Context(), orderTo(id, "2001")); err != nil {
			t.Fatal(err)
		}
		j.Await(t, id, origination.Bridged)
	}
	s.mu.Lock()
	asked := s.asked
	s.client.Close()
	for channel, r := range s.channels { // one call ends while we are away
		if _, job, _ := readTag(r.Tag); job == jobOf("b") {
			delete(s.channels, channel)
		}
	}
	s.mu.Unlock()
	j.Await(t, "b", origination.Ended)
	s.await("some more looks", func() bool { return s.asked > asked+5 })
	if got, want := j.States("a"), []string{ringing, answered, dialling, joined}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.release()
	j.Await(t, "a", origination.Ended)
	noCalls(t, d)
}

// A user with two phones: the second is answered first, the first is sent away.
func TestOneOfTwoPhonesIsAnswered(t *testing.T) {
	script := load(t, "short_talk")
	var forked []told
	for _, e := range script.events {
		second := make(told)
		for name, value := range e {
			second[name] = value
		}
		if e["Unique-ID"] == script.owner {
			second["Unique-ID"] = "0e0e0e0e-0000-4000-8000-000000000001"
		}
		if e["Event-Name"] == "BACKGROUND_JOB" {
			second["_body"] = "+OK 0e0e0e0e-0000-4000-8000-000000000001\n"
		}
		if e["Event-Name"] == "CHANNEL_ANSWER" && e["Unique-ID"] == script.owner {
			for _, name := range []string{"CHANNEL_CREATE", "CHANNEL_ANSWER", "CHANNEL_HANGUP", "CHANNEL_DESTROY"} {
				forked = append(forked, told{"Event-Name": name, "Unique-ID": script.owner, "Hangup-Cause": "LOSE_RACE",
					"Caller-Channel-Answered-Time": "1795201311720646", "Channel-Call-State": "HANGUP"})
			}
		}
		forked = append(forked, second)
	}
	script.events = forked
	s := newScripted(t, &scripted{scripts: map[string]session{"2002": script}})
	d := newDriver(t, s.config())
	j, _ := follow(t, d, nil)
	if _, err := d.Originate(t.Context(), orderTo("c", "2002")); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "c", origination.Ended)
	if got, want := j.States("c"), sessions["2002"].want; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	noCalls(t, d)
}

func TestMissingEventsLeadToALook(t *testing.T) {
	script := load(t, "short_talk")
	s := newScripted(t, &scripted{scripts: map[string]session{"2002": script}, hold: "HEARTBEAT", timing: timing{order: func(events []told) []told {
		var kept []told
		for i, e := range events { // all of the owner's end is lost, and much more
			e["Event-Sequence"] = fmt.Sprint(1000 + i)
			if e["Event-Name"] == "CHANNEL_HANGUP" || e["Event-Name"] == "CHANNEL_DESTROY" {
				delete(e, "Channel-Presence-Data")
				e["Event-Name"] = "CHANNEL_GONE"
			}
			kept = append(kept, e)
		}
		return append(kept, told{"Event-Name": "HEARTBEAT", "Event-Sequence": "90000"})
	}}})
	cfg := s.config()
	cfg.AllEvents, cfg.AuditEvery = true, time.Hour
	d := newDriver(t, cfg)
	j, _ := follow(t, d, nil)
	if _, err := d.Originate(t.Context(), orderTo("c", "2002")); err != nil {
		t.Fatal(err)
	}
	j.Await(t, "c", origination.Bridged)
	s.mu.Lock()
	clear(s.channels)
	s.mu.Unlock()
	s.release()
	j.Await(t, "c", origination.Ended)
	noCalls(t, d)
}

func TestWrongPasswordIsTriedAgain(t *testing.T) {
	s := newScripted(t, &scripted{scripts: allSessions(t)})
	cfg := s.config()
	cfg.Password = "wrong"
	d := newDriver(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- d.Follow(ctx, nil, func(origination.Progress) {}) }()
	s.await("it is tried again", func() bool { return s.denied > 2 })
	if _, err := d.Originate(t.Context(), order("c")); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Follow: %v", err)
	}
}
