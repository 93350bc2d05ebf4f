package web

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
)

// message holds the members of a channel message that the fold reads.
type message struct {
	ID        string `json:"id"`
	Account   string `json:"account_id"`
	Timestamp int64  `json:"timestamp"`
	Metadata  struct {
		Facts event.Facts `json:"facts"`
	} `json:"metadata"`

	id      event.ID
	restart bool // the board restarts with a snapshot of the state so far, in place of this message
	fresh   bool // with restart: forget the earlier messages
}

// captured returns the messages of the captured events of every platform, a session per file.
func captured(t *testing.T) (sessions [][]message) {
	t.Helper()
	files, err := filepath.Glob("../format/*/testdata/*/*.want.jsonl")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files of captured events, %v", len(files), err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var session []message
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var m message
			if !strings.HasPrefix(lines.Text(), `{"id":"cc_evt_`) || json.Unmarshal(lines.Bytes(), &m) != nil {
				continue // a dead letter or a call record
			}
			session = append(session, m)
		}
		sessions = append(sessions, session)
	}
	return sessions
}

// anyFacts returns random facts of a few agents and calls: any name, state and fields.
func anyFacts(random *rand.Rand) event.Facts {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	names := event.Names()
	f := event.Facts{
		Name:    names[random.IntN(len(names))],
		AgentID: pick("", "", "1001", "1002", "1003@pbx.example.com", "__proto__", strings.Repeat("é", 129)),
		CallID:  pick("", "c1", "c2", "c3", "constructor", strings.Repeat("c", 257)),
		QueueID: pick("", "", "support", "sales"), Caller: pick("", "+15551230001", strings.Repeat("5", 300)),
		AgentName: pick("", "", "Ada", strings.Repeat("A", 257)), Reason: pick("", "lunch"),
	}
	if random.IntN(3) == 0 {
		f.State = event.State(pick("offline", "available", "ringing", "talking", "wrap_up", "break", "other", "waiting", "held", "ended"))
	}
	return f
}

// TestTheBoardFoldsAsTheServerDoes compares the board's floor with event/state after each
// message: for captured events of every platform and then random facts, both from the beginning;
// and for captured events after a snapshot at any point.
func TestTheBoardFoldsAsTheServerDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 42))
	var all []message
	restart := message{restart: true, fresh: true}
	sessions := captured(t)
	for _, session := range sessions {
		all = append(append(all, restart), session...)
	}
	for range 30 {
		all = append(all, restart)
		for range 300 {
			m := message{Account: []string{"a", "b"}[random.IntN(2)]}
			m.Metadata.Facts = anyFacts(random)
			all = append(all, m)
		}
	}
	for _, session := range sessions {
		all = append(all, restart)
		for i, m := range session {
			all = append(all, m)
			if i%7 == 3 {
				all = append(all, message{restart: true})
			}
		}
	}
	compareFloors(t, random, all)
}

func compareFloors(t *testing.T, random *rand.Rand, all []message) {
	t.Helper()
	now, id := time.UnixMilli(1_795_169_700_000), event.ID(0)
	p := state.NewPartition()
	var input bytes.Buffer
	want, shown := make([][]string, len(all)), 0
	for i := range all {
		m := &all[i]
		now = now.Add(time.Duration(random.IntN(3)) * time.Second)
		if random.IntN(200) == 0 {
			now = now.Add(26 * time.Hour) // beyond the age at which calls are removed
		}
		id = event.NextID(id, now.UnixMilli(), 3)
		m.id, m.ID, m.Timestamp = id, id.String(), now.Unix()
		var line any = m
		switch {
		case m.fresh:
			p = state.NewPartition()
			line = map[string]any{"snapshot": nil}
		case m.restart:
			line = map[string]any{"snapshot": snapshotOf(p, id, now)}
		default:
			e := state.Event{ID: id, Account: m.Account, Timestamp: m.Timestamp, Facts: m.Metadata.Facts}
			p.Apply(&e) // completes the facts, as the normalizer does
			m.Metadata.Facts = e.Facts
		}
		text, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(text, '\n'))
		want[i] = floorOf(p, id)
		shown = max(shown, len(want[i]))
	}
	for i, got := range folded(t, &input, len(all)) {
		if about := all[i].Metadata.Facts.Name; !slices.Equal(got, want[i]) && (folds(about) || all[i].restart) {
			t.Fatalf("message %d, %+v:\nthe board  %q\nthe server %q", i, all[i], got, want[i])
		}
	}
	if shown < 6 {
		t.Errorf("at most %d were on the floor", shown)
	}
	t.Logf("%d messages, at most %d agents and calls at once", len(all), shown)
}

// folds reports whether the board processes the event; expired entries are removed only then.
func folds(n event.Name) bool {
	kind, _, _ := strings.Cut(string(n), ".")
	return kind == "agent" || kind == "queue" || kind == "call" && n != event.NameCallProgress
}

func live(p *state.Partition, at event.ID) (entries []*state.Entry) {
	for _, e := range p.All() {
		if e.Live() && e.Kind != state.Device && e.Expires() > at {
			entries = append(entries, e)
		}
	}
	return entries
}

func snapshotOf(p *state.Partition, at event.ID, now time.Time) map[string]any {
	agents, calls := []any{}, []any{}
	for _, e := range live(p, at) {
		one := map[string]any{"account_id": e.AccountID, "state": e.State, "since": e.Since, "agent_id": e.AgentID, "queue_id": e.QueueID, "call_id": e.CallID}
		if e.Kind == state.Agent {
			one["agent_id"], one["agent_name"], one["reason"], one["after_call"] = e.ID, e.AgentName, e.Reason, e.AfterCall
			agents = append(agents, one)
		} else {
			one["call_id"], one["caller"] = e.ID, e.Caller
			calls = append(calls, one)
		}
	}
	return map[string]any{"timestamp": now.Unix(), "agents": agents, "calls": calls}
}

func floorOf(p *state.Partition, at event.ID) []string {
	shown := []string{}
	for _, e := range live(p, at) {
		if e.Kind == state.Agent {
			shown = append(shown, fmt.Sprintf("agent|%s|%s|%s|%d|%s|%s|%s", e.AccountID, e.ID, e.State, e.Since, e.AgentName, e.CallID, e.Reason))
		} else {
			shown = append(shown, fmt.Sprintf("call|%s|%s|%s|%d|%s|%s|%s", e.AccountID, e.ID, e.State, e.Since, e.QueueID, e.AgentID, e.Caller))
		}
	}
	slices.Sort(shown)
	return shown
}

// folded returns the board's floor after each of n lines.
func folded(t *testing.T, input *bytes.Buffer, n int) (floors [][]string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node(t), "jstest/fold.js")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = input, &errs
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	for line := range bytes.Lines(output) {
		var shown []string
		if err := json.Unmarshal(line, &shown); err != nil {
			t.Fatal(err)
		}
		floors = append(floors, shown)
	}
	if len(floors) != n {
		t.Fatalf("%d floors of %d lines", len(floors), n)
	}
	return floors
}
