package registry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/format"
)

// factLines returns a line "name state" for each record of a file whose facts are selected; repeats of a line
// are left out.
func factLines(t *testing.T, path string, selects func(*event.Facts) bool) (lines []string) {
	t.Helper()
	dir := filepath.Base(filepath.Dir(path))
	f, ok := Lookup(dir)
	if !ok {
		f, ok = Lookup("freeswitch.event") // simple.jsonl is beside the folders
	}

	in, err := os.ReadFile(path)
	if err != nil || !ok {
		t.Fatal(err, dir)
	}

	var fields format.Fields
	for line := range bytes.Lines(in) {
		e, err := f.ReadEvent(line, &fields)
		if err != nil {
			t.Fatal(err)
		}

		if !selects(&e.Facts) {
			continue
		}

		line := strings.TrimSpace(fmt.Sprintf("%s %s", e.Facts.Name, e.Facts.State))
		if len(lines) == 0 || lines[len(lines)-1] != line {
			lines = append(lines, line)
		}
	}

	return lines
}

// The same course of a call has the same facts on each platform. Captured sessions,
// but for those of Kazoo, which are made from its schemas.
func TestTheSameStoryHasTheSameFactsOnEachPlatform(t *testing.T) {
	const (
		callcenter = "../freeswitch/testdata/freeswitch.callcenter/"
		channels   = "../freeswitch/testdata/freeswitch.event/"
		asterisk   = "../asterisk/testdata/asterisk.ami/"
		acdc       = "../kazoo/testdata/kazoo.acdc/"
	)
	queueCall := func(id string) func(*event.Facts) bool {
		return func(f *event.Facts) bool { return f.CallID == id && strings.HasPrefix(string(f.Name), "queue.") }
	}

	leg := func(id string, without ...event.Name) func(*event.Facts) bool {
		return func(f *event.Facts) bool {
			return f.CallID == id && strings.HasPrefix(string(f.Name), "call.") && !slices.Contains(without, f.Name)
		}
	}

	for story, platforms := range map[string]struct {
		want []string
		from map[string]func(*event.Facts) bool // by file: which of its records are of the story
	}{
		"a call waits, rings, is answered, ends": {
			want: []string{"queue.call_entered waiting", "queue.call_offered ringing", "queue.call_answered talking",
				"queue.call_ended ended"},
			from: map[string]func(*event.Facts) bool{
				callcenter + "captured.in.jsonl":     queueCall("05eb7b8e-c2af-4508-bea8-19f36e5d169a"),
				asterisk + "queue-answered.in.jsonl": queueCall("1795348343.0"),
				acdc + "answered.in.jsonl":           queueCall("c-1"),
			},
		},
		"a call waits, rings, is given up": {
			want: []string{"queue.call_entered waiting", "queue.call_offered ringing", "queue.call_abandoned ended"},
			from: map[string]func(*event.Facts) bool{
				callcenter + "abandoned.in.jsonl":     queueCall("ad650e56-0b48-4095-9059-046f77e0e2be"),
				asterisk + "queue-abandoned.in.jsonl": queueCall("1795348382.16"),
				acdc + "abandoned.in.jsonl":           queueCall("c-1"),
			},
		},
		"the leg to a phone rings, is answered, ends": {
			want: []string{"call.created", "call.ringing ringing", "call.answered talking", "call.ended ended"},
			from: map[string]func(*event.Facts) bool{
				"../freeswitch/testdata/simple.jsonl": leg("55961ebe-6e81-492a-92dd-6a94d6c73929", event.NameCallDTMF),
				channels + "c2c-nobowout.in.jsonl":    leg("04673e0b-4f5f-43dc-977a-23a07ee336c0"),
				asterisk + "c2c.in.jsonl":             leg("1795348574.91"),
				asterisk + "queue-answered.in.jsonl":  leg("1795348343.2"),
			},
		},
		"a leg calls, is connected to another, ends": {
			want: []string{"call.created", "call.ringing ringing", "call.answered talking", "call.bridged talking",
				"call.ended ended"},
			from: map[string]func(*event.Facts) bool{
				"../freeswitch/testdata/simple.jsonl": leg("e895fedc-3fa1-4984-81a7-a24b81231590"),
				channels + "c2c-nobowout.in.jsonl":    leg("93505f3f-3700-434c-807b-bb6ecead4738"),
				asterisk + "c2c.in.jsonl":             leg("0d3f5c1e-6b0a-4f8e-9c57-7a1100000018-owner"),
			},
		},
	} {
		for path, selects := range platforms.from {
			if got := factLines(t, path, selects); !slices.Equal(got, platforms.want) {
				t.Errorf("%s, %s:\n got %v\nwant %v", story, path, got, platforms.want)
			}
		}
	}
}

// An agent's day in the words of each platform. mod_callcenter has one word,
// Available, for a login and the end of a break; the state before distinguishes them
// (agent.login, agent.break_end). Asterisk's queues have no login, but members.
func TestAnAgentsDayOnEachPlatform(t *testing.T) {
	is := func(id string) func(*event.Facts) bool {
		return func(f *event.Facts) bool {
			return f.AgentID == id && strings.HasPrefix(string(f.Name), "agent.")
		}
	}

	for path, c := range map[string]struct {
		agent string
		want  []string
	}{
		"../freeswitch/testdata/freeswitch.callcenter/captured.in.jsonl": {"1002@127.0.0.20", []string{
			"agent.state available", "agent.state ringing", "agent.state talking", "agent.state",
			"agent.break_start break", "agent.logout offline",
		}},
		"../freeswitch/testdata/freeswitch.callcenter/break-return.in.jsonl": {"1001@pbx.example.com", []string{
			"agent.state available", "agent.break_start break", "agent.state available", "agent.logout offline",
		}},
		"../asterisk/testdata/asterisk.ami/member-add-pause-unpause-penalty-remove.in.jsonl": {"Local/agent4@agents/n",
			[]string{
				"agent.queue_join available", "agent.break_start break", "agent.break_end available",
				"agent.break_start break", "agent.break_end available", "agent.queue_leave offline",
			}},
		"../kazoo/testdata/kazoo.acdc/answered.in.jsonl": {"a-1", []string{
			"agent.login available", "agent.state available", "agent.state ringing", "agent.state talking",
			"agent.state wrap_up",
			"agent.state available", "agent.break_start break", "agent.state available", "agent.logout offline",
		}},
	} {
		if got := factLines(t, path, is(c.agent)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", path, got, c.want)
		}
	}
}
