package freeswitch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/ingest/feed"
)

const captures = "../../../format/freeswitch/testdata/"

// captured returns the events of a call to a queue and of a call between phones,
// without those that are the session's own.
func captured(t testing.TB) []string {
	all := slices.Concat(lines(t, captures+"freeswitch.callcenter/captured.in.jsonl"),
		lines(t, captures+"freeswitch.event/captured.in.jsonl"))
	return slices.DeleteFunc(all, func(body string) bool { return strings.Contains(body, `"Event-Name":"API"`) })
}

// Events that arrive in pieces of any size are read once, in order and byte for byte.
func TestEventsAreReadAsTheyCame(t *testing.T) {
	events := captured(t)
	stream := ""
	for _, body := range events {
		stream += frame(body)
	}

	for name, piece := range map[string]func(sent int) int{
		"at once":            func(int) int { return len(stream) },
		"byte by byte":       func(sent int) int { return max(1, sent-20_000) }, // the first 20,000
		"pieces of any size": func(int) int { return 1 + rand.IntN(3000) },
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSwitch{play: func(p *peer) {
				for sent := 0; sent < len(stream); {
					n := min(piece(sent), len(stream)-sent)
					p.writef("%s", stream[sent:sent+n])
					sent += n
				}
			}}

			s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
			for i, e := range read(t, s, len(events)) {
				if string(e.Value) != events[i] {
					t.Fatalf("event %d is\n%s, want\n%s", i, e.Value, events[i])
				}
				if e.Account != "acme" || e.Topic != event.TopicRaw || e.Identity.Number == 0 || e.Hole != 0 ||
					e.Resync {
					t.Fatalf("event %d is %+v", i, e)
				}
			}
		})
	}
}

// The formats of records and the subjects are those by which the normalizer reads
// them.
func TestFormatsAndSubjectsAreTheNormalizers(t *testing.T) {
	events := captured(t)
	f := &fakeSwitch{play: func(p *peer) { p.events(events...) }}
	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
	var fields format.Fields

	for i, e := range read(t, s, len(events)) {
		known, ok := registry.Lookup(e.Format)
		if !ok {
			t.Fatalf("event %d has the format %q", i, e.Format)
		}

		parsed, err := known.ReadEvent(e.Value, &fields)
		if err != nil {
			t.Fatal(err)
		}

		if parsed.Facts.Name != event.NameOther && parsed.Facts.CallID != "" &&
			!slices.Contains(e.Subjects, parsed.Facts.CallID) {
			t.Errorf("event %d is about %q and has the subjects %q", i, parsed.Facts.CallID, e.Subjects)
		}
		if isQueue := strings.Contains(events[i], `"CC-Action"`); isQueue != (e.Format == callcenterFormat) {
			t.Errorf("event %d has the format %q", i, e.Format)
		}
	}
}

func TestEndsOfSessions(t *testing.T) {
	first := `{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"r","Event-Sequence":"1","Unique-ID":"a"}`
	second := frame(`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"r","Event-Sequence":"2","Unique-ID":"b"}`)
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"closed": {func(p *peer) { p.events(first); p.Close() }, io.EOF},
		"cut within an event": {func(p *peer) { p.events(first); p.writef("%s", second[:len(second)/2]); p.Close() },
			io.ErrUnexpectedEOF},
		"shut down": {func(p *peer) { p.events(first, `{"Event-Name":"SHUTDOWN","Core-UUID":"r"}`) },
			errShutdown},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSwitch{play: test.play}
			s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
			events, err := readEnd(t, s)
			if len(events) != 1 || string(events[0].Value) != first || !errors.Is(err, test.want) {
				t.Fatalf("got %d events and %v, want the first one and %v", len(events), err, test.want)
			}
		})
	}
}

// A cut cable shows in no way but that nothing comes any more.
func TestSilentConnectionEnds(t *testing.T) {
	f := &fakeSwitch{answers: map[string]string{"status": silence}}
	p := f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)
	p.idleAfter = time.Millisecond
	s := openSession(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	client := s.(*session).conn
	go func() {
		for f.timesReceived("api status") == 0 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		client.Close() // as the client itself does after commandTimeout
	}()

	if _, err := s.Read(ctx); !errors.Is(err, errSilent) {
		t.Fatalf("got %v", err)
	}
}

func TestIdleConnectionGoesOnWhileTheSwitchAnswers(t *testing.T) {
	f := &fakeSwitch{answers: map[string]string{"status": "-ERR permission denied\n"}} // an answer too
	f.play = func(p *peer) {
		for f.timesReceived("api status") < 3 {
			time.Sleep(time.Millisecond)
		}
		p.events(`{"Event-Name":"CHANNEL_ANSWER"}`)
	}

	p := f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)
	p.idleAfter = time.Millisecond
	read(t, openSession(t, p), 1)
}

func TestReadEndsWithItsContext(t *testing.T) {
	s := openSession(t, new(fakeSwitch).serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

func TestSwitchRestartedWithinTheConnectionIsAResync(t *testing.T) {
	f := &fakeSwitch{play: func(p *peer) {
		p.events(`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"one","Event-Sequence":"900"}`,
			`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"two","Event-Sequence":"3"}`,
			`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"two","Event-Sequence":"4"}`)
	}}

	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme", Events: []string{"ALL"}}, nil))
	events := read(t, s, 3)
	for i, want := range []bool{false, true, false} {
		if e := events[i]; e.Resync != want || e.Hole != 0 {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
}

func TestTierChangeIsAResyncWithoutARecord(t *testing.T) {
	api := func(command, argument string) string {
		return fmt.Sprintf(`{"Event-Name":"API","API-Command":%q,"API-Command-Argument":%q}`, command, argument)
	}
	f := &fakeSwitch{play: func(p *peer) {
		p.events(api("callcenter_config", "tier list"), api("status", ""),
			api("sofia_contact", "1001@acme.example.com"),
			api("callcenter_config", "tier  add support@acme 1001 1 1"), `{"Event-Name":"HEARTBEAT"}`,
			`{"Event-Name":"CHANNEL_ANSWER"}`, api("callcenter_config", "agent del 1001"))
	}}

	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
	events := read(t, s, 3)
	for i, want := range []struct{ resync, stored bool }{{true, false}, {false, true}, {true, false}} {
		if e := events[i]; e.Resync != want.resync || want.stored != (e.Value != nil) {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}

func TestCommandsThatChangeQueuesAreKnownInAnyCase(t *testing.T) {
	for command, want := range map[string]bool{
		"reload mod_callcenter": true, "reload -f mod_callcenter": true, "RELOAD Mod_CallCenter": true,
		"load mod_callcenter":                      true,
		"callcenter_config agent reload 1001@acme": true, "callcenter_config Agent RELOAD 1001@acme": true,
		"callcenter_config tier reload support@acme 1001": true, "Callcenter_Config TIER  Reload all": true,
		"callcenter_config queue Load q":                    true,
		"callcenter_config agent set status 1001 Available": false, "callcenter_config tier list": false,
		"reload mod_sofia":                false,
		"callcenter_config agent reloads": false, "": false,
	} {
		if got := changesQueues(command); got != want {
			t.Errorf("%q: got %t", command, got)
		}
	}
}

// A snapshot that is requested just behind such a command waits for the module's tables, and fails while the
// module is away: the feed tries again.
func TestASnapshotWaitsForTheReloadedModule(t *testing.T) {
	f := &fakeSwitch{play: func(p *peer) {
		p.events(`{"Event-Name":"API","API-Command":"reload","API-Command-Argument":"mod_callcenter"}`)
	}}
	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)).(*session)
	read(t, s, 1)
	changed := s.lastQueuesChange()
	if changed.IsZero() {
		t.Fatal("the command is not known")
	}

	s.tableLag = 200 * time.Millisecond
	if err := s.waitForTables(t.Context()); err != nil || time.Since(changed) < s.tableLag {
		t.Errorf("asked %v behind the command: %v", time.Since(changed), err)
	}

	s.tableLag = 0
	if _, err := s.Snapshot(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "mod_callcenter is being loaded") {
		t.Errorf("a snapshot without the module: %v", err)
	}

	s.mu.Lock()
	s.queuesChangeAt = time.Now().Add(-reloadTime)
	s.mu.Unlock()

	snapshot, err := s.Snapshot(t.Context())
	if err != nil || len(snapshot.CompleteKinds) != 0 ||
		!strings.Contains(fmt.Sprint(snapshot.Notes), "mod_callcenter is not loaded") {
		t.Errorf("later: %+v, %v", snapshot, err)
	}
}

// mod_callcenter sends no end of a call whose caller hangs up while an agent is being connected. The
// events are captured.
func TestAFailedBridgeIsAResync(t *testing.T) {
	captured, err := os.ReadFile("../../../format/freeswitch/testdata/freeswitch.callcenter/bridge-failed.in.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	lines := strings.Split(strings.TrimSpace(string(captured)), "\n")
	f := &fakeSwitch{play: func(p *peer) { p.events(lines...) }}

	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
	for i, e := range read(t, s, len(lines)) {
		if last := i == len(lines)-1; e.Resync != last || e.Value == nil {
			t.Errorf("event %d of %d is %+v", i, len(lines), e)
		}
	}
}

// A hole is seen where more numbers are missing than the switch leaves out itself,
// with ALL; and where HEARTBEATs are missing.
func TestHoles(t *testing.T) {
	numbered := func(n int) string {
		return fmt.Sprintf(`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":"r","Event-Sequence":"%d"}`, n)
	}
	beat := func(second int) string {
		return fmt.Sprintf(`{"Event-Name":"HEARTBEAT","Core-UUID":"r","Event-Date-Timestamp":"%d000000"}`, second)
	}
	var gap []string // numbers 1 to 2000 without 500 to 599, two and two the wrong way round

	for n := 1; n < 2000; n += 2 {
		if n < 499 || n > 599 {
			gap = append(gap, numbered(n+1), numbered(n))
		}
	}

	for name, test := range map[string]struct {
		words  []string
		events []string
		want   uint64
	}{
		"numbers with ALL":            {[]string{"ALL"}, gap, 102},
		"numbers of a part":           {nil, gap, 0},
		"regular heartbeats":          {nil, []string{beat(100), beat(120), beat(140), beat(161)}, 0},
		"three heartbeats missing":    {nil, []string{beat(100), beat(120), beat(200)}, 3},
		"a clock that was set back":   {nil, []string{beat(100), beat(120), beat(60), beat(80)}, 0},
		"the first interval too long": {nil, []string{beat(100), beat(160), beat(180), beat(220)}, 1},
		"a clock that was set back by less than an interval": {nil,
			[]string{beat(100), beat(120), beat(125), beat(145), beat(165), beat(185), beat(205), beat(225), beat(265)},
			3 + 3 + 1},
		"a clock that was set back by an interval": {nil,
			[]string{beat(100), beat(120), beat(120), beat(140), beat(200)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			last := `{"Event-Name":"CHANNEL_ANSWER","Unique-ID":"last"}`
			f := &fakeSwitch{play: func(p *peer) { p.events(append(test.events, last)...) }}
			s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme", Events: test.words}, nil))
			var lost uint64

			for {
				e := read(t, s, 1)
				for _, one := range e {
					lost += one.Hole
				}

				if string(e[len(e)-1].Value) == last {
					break
				}
			}

			if lost != test.want {
				t.Errorf("%d events are missing, want %d", lost, test.want)
			}
		})
	}
}

func TestEventsThatAreNotUTF8OrNotJSON(t *testing.T) {
	f := &fakeSwitch{play: func(p *peer) {
		p.events("{\"Event-Name\":\"CHANNEL_ANSWER\",\"Caller-Caller-ID-Name\":\"J\xf6rg\"}", `{"Event-Name":`,
			`{"Event-Name":"CHANNEL_ANSWER"}`)
	}}

	s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
	events := read(t, s, 3)
	if want := `{"Event-Name":"CHANNEL_ANSWER","Caller-Caller-ID-Name":"J` + "\uFFFD" +
		`rg"}`; string(events[0].Value) != want {
		t.Errorf("got %q", events[0].Value)
	}
	if events[1].Value != nil || events[1].Hole != 1 || events[2].Value == nil {
		t.Errorf("an unreadable event is %+v, the next one %+v", events[1], events[2])
	}
}

// A switch that comes back has another Core-UUID and counts from the beginning: its
// events are not taken for those of the run before.
func TestSwitchRestartedBetweenConnections(t *testing.T) {
	runs := make(chan string, 2)
	runs <- "one"
	runs <- "two"

	f := &fakeSwitch{play: func(p *peer) {
		p.events(fmt.Sprintf(`{"Event-Name":"CHANNEL_ANSWER","Core-UUID":%q,"Event-Sequence":"7"}`, <-runs))
		p.Close()
	}}

	p := f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)
	for _, run := range []string{"one", "two"} {
		events, err := readEnd(t, openSession(t, p))
		if len(events) != 1 || !errors.Is(err, io.EOF) {
			t.Fatalf("got %d events, %v", len(events), err)
		}

		if want := (feed.Identity{Run: run, Number: 7}); events[0].Identity != want || events[0].Resync {
			t.Fatalf("got %+v, want %+v", events[0], want)
		}
	}
}
