package freeswitch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/origination"
	"trunkline/origination/drivertest"
	"trunkline/origination/eventdriver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ringing  = drivertest.Ringing
	answered = drivertest.Answered
	dialling = drivertest.Dialling
	joined   = drivertest.Bridged
	ended    = drivertest.Ended
)

func newDriver(t *testing.T, cfg Config) (*Driver, *drivertest.Probe) {
	t.Helper()
	deps, probe := drivertest.NewProbe(t, "freeswitch")
	d, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	return d, probe
}

// follow returns a driver that is connected.
func follow(t *testing.T, cfg Config) (*Driver, *drivertest.Probe, *drivertest.Journal) {
	t.Helper()
	d, probe := newDriver(t, cfg)
	j, _ := drivertest.Follow(t, d.Follow, nil)
	probe.AwaitConnected(t)
	return d, probe, j
}

func order(id string) origination.Order { return drivertest.OrderTo(id, "1002") }

// capturedCalls are the captured calls, by the number that is dialled for each, with
// what must be reported when every event comes in its place.
var capturedCalls = map[string]struct {
	file string
	want []string
}{
	"2001": {"talk", []string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
	"2002": {"short_talk", []string{ringing, answered, dialling, joined, ended, "NORMAL_CLEARING"}},
	"2003": {"early_media", []string{ringing, answered, dialling, joined, ended, "ORIGINATOR_CANCEL"}},
	"2004": {"busy", []string{ringing, answered, dialling, ended, "USER_BUSY"}},
	"2005": {"destination_no_answer", []string{ringing, answered, dialling, ended, "NO_ANSWER"}},
	"2006": {"owner_no_answer", []string{ringing, ended, "NO_ANSWER"}},
	"2007": {"owner_absent", []string{ended, "SUBSCRIBER_ABSENT"}},
	"2009": {"owner_hangs_up_while_dialling", []string{ringing, answered, dialling, ended, "ORIGINATOR_CANCEL"}},
	"2010": {"owner_rejects", []string{ringing, ended, "USER_BUSY"}},
	"2011": {"destination_rejects", []string{ringing, answered, dialling, ended, "USER_BUSY"}},
	"2008": {"owner_cancelled_while_dialling", []string{ringing, answered, dialling, ended, "ORIGINATOR_CANCEL"}},
}

func loadCapturedCalls(t *testing.T) map[string]capturedCall {
	scripts := make(map[string]capturedCall)
	for number, s := range capturedCalls {
		scripts[number] = loadCapturedCall(t, s.file)
	}
	return scripts
}

func TestDriver(t *testing.T) {
	suite := drivertest.Suite{
		StartPlatform: func(t *testing.T,
			p *drivertest.ScriptedPlatform) func(eventdriver.Limits, bool) (drivertest.Driver, *drivertest.Probe) {
			s := newScripted(t, &scriptedSwitch{ScriptedPlatform: p})
			return func(limits eventdriver.Limits, denied bool) (drivertest.Driver, *drivertest.Probe) {
				cfg := s.driverConfig()
				cfg.Limits = limits
				if denied {
					cfg.Password = drivertest.WrongPassword
				}
				return newDriver(t, cfg)
			}
		},
		Calls: make(map[string][]string), Talk: "2002", Busy: "2004",
		Before: []string{"CHANNEL_OUTGOING", "CHANNEL_CREATE"},
		Events: []string{"CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_ANSWER", "BACKGROUND_JOB", "CHANNEL_BRIDGE",
			"CHANNEL_HANGUP", "CHANNEL_DESTROY"},
		Answer: "CHANNEL_ANSWER", HangUp: "CHANNEL_HANGUP",
	}

	for number, session := range capturedCalls {
		suite.Calls[number] = session.want
	}

	suite.Run(t)
}

// A session may arrive slowly, in pieces and out of order.
func TestCapturedSessionsInAnyTiming(t *testing.T) {
	type timing struct {
		name  string
		pause time.Duration
		split bool
		order func([]capturedEvent) []capturedEvent
	}

	timings := []timing{
		{name: "fast"},
		{name: "slow", pause: 200 * time.Microsecond},
		{name: "split anywhere", split: true},
		{name: "destination first", order: func(events []capturedEvent) []capturedEvent {
			return movedFirst(events,
				func(e capturedEvent) bool {
					return strings.HasPrefix(e["Channel-Presence-Data"], tag(tagDestination, ""))
				})
		}},
		{name: "job first", order: func(events []capturedEvent) []capturedEvent {
			return movedFirst(events, func(e capturedEvent) bool { return eventName(e) == "BACKGROUND_JOB" })
		}},
		{name: "job last", order: func(events []capturedEvent) []capturedEvent {
			return movedFirst(events, func(e capturedEvent) bool { return eventName(e) != "BACKGROUND_JOB" })
		}},
	}

	for seed := range uint64(8) {
		timings = append(timings, timing{name: fmt.Sprint("reordered ", seed), order: shuffled(seed, 6)})
	}

	for _, timing := range timings {
		t.Run(timing.name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t,
				&scriptedSwitch{order: timing.order,
					ScriptedPlatform: &drivertest.ScriptedPlatform{Pause: timing.pause, Split: timing.split}})
			d, probe, j := follow(t, s.driverConfig())

			for number := range capturedCalls {
				if _, err := d.Originate(t.Context(), drivertest.OrderTo("call-"+number, number)); err != nil {
					t.Fatal(err)
				}
			}

			for number, session := range capturedCalls {
				j.Await(t, "call-"+number, origination.Ended)
				got, want := j.States("call-"+number), session.want
				switch {
				case timing.order == nil && !slices.Equal(got, want):
					t.Errorf("%s: got %v, want %v", session.file, got, want)
				case !drivertest.WellFormed(got) || got[len(got)-1] != want[len(want)-1]:
					t.Errorf("%s: got %v, want the end of %v", session.file, got, want)
				case slices.Contains(got, joined) != slices.Contains(want, joined):
					t.Errorf("%s: got %v, want %v", session.file, got, want)
				}
			}

			probe.AwaitNoCalls(t)
		})
	}
}

func TestSwitchThatDoesNotShowItsChannels(t *testing.T) {
	s := newScripted(t, &scriptedSwitch{ScriptedPlatform: &drivertest.ScriptedPlatform{Hold: "CHANNEL_HANGUP"},
		hidesChannels: true})
	d, probe, j := follow(t, s.driverConfig())
	for _, id := range []string{"a", "b"} {
		if _, err := d.Originate(t.Context(), drivertest.OrderTo(id, "2001")); err != nil {
			t.Fatal(err)
		}
		j.Await(t, id, origination.Bridged)
	}

	s.Mu.Lock()
	asked := s.tableQueries
	s.Client.Close()

	for channel, r := range s.channels { // one call ends while we are away
		if _, job, _ := readTag(r.Tag); job == jobOf("b") {
			delete(s.channels, channel)
		}
	}
	s.Mu.Unlock()

	j.Await(t, "b", origination.Ended)
	s.Await("some more looks", func() bool { return s.tableQueries > asked+5 })
	if got, want := j.States("a"), []string{ringing, answered, dialling, joined}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	s.Release()
	j.Await(t, "a", origination.Ended)
	probe.AwaitNoCalls(t)
}

// A user with two phones: the second is answered first, the first is sent away.
func TestOneOfTwoPhonesIsAnswered(t *testing.T) {
	script := loadCapturedCall(t, "short_talk")
	var forked []capturedEvent
	for _, e := range script.events {
		second := make(capturedEvent)
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
				forked = append(forked, capturedEvent{"Event-Name": name, "Unique-ID": script.owner,
					"Hangup-Cause": "LOSE_RACE", "Caller-Channel-Answered-Time": "1795201311720646",
					"Channel-Call-State": "HANGUP"})
			}
		}

		forked = append(forked, second)
	}

	script.events = forked
	s := newScripted(t, &scriptedSwitch{scripts: map[string]capturedCall{"2002": script}})
	d, probe, j := follow(t, s.driverConfig())
	if _, err := d.Originate(t.Context(), drivertest.OrderTo("c", "2002")); err != nil {
		t.Fatal(err)
	}

	j.Await(t, "c", origination.Ended)
	if got, want := j.States("c"), capturedCalls["2002"].want; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}

	probe.AwaitNoCalls(t)
}
