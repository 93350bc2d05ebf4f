package snapshot

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/registry"
)

const day = 24 * time.Hour

// bounds are those of a state that nothing is too much for.
var testBounds = Config{AgentAge: day, CallAge: day, PerAccount: 1000, Budget: NewBudget(1 << 20)}

// start is when the first message of a test came in.
var start = time.UnixMilli(1_795_169_700_000)

// player applies messages one after the other, a second apart.
type player struct {
	*State
	last event.ID
	now  time.Time
}

func newPlayer(cfg Config) *player { return &player{State: New(cfg), now: start} }

func (p *player) play(m Message) {
	p.now = p.now.Add(time.Second)
	m.ID = event.NextID(p.last, p.now.UnixMilli(), 3)
	if m.Timestamp == 0 {
		m.Timestamp = p.now.Unix()
	}
	if f, ok := registry.Lookup(m.Format); ok { // as the normalizer
		record := m.Data
		if m.Format == "generic" {
			record = []byte(strings.Replace(string(record), "{", `{"type":"`+string(m.Type)+`",`, 1))
		}
		e, _ := f.ReadEvent(record, new(format.Fields))
		m.Queue = e.QueueID
	}
	p.last = m.ID
	p.Apply(m)
}

func everybody(string) bool { return true }

// shows is the state in short: agents "id state/status since", then calls "id
// state queue agent since", since in seconds after start.
func (p *player) shows() string {
	picture := NewView()
	picture.Add(p.State, everybody, p.now)
	return shows(picture)
}

func shows(p *View) string {
	var lines []string
	for _, a := range p.Agents() {
		lines = append(lines, fmt.Sprintf("%s %s/%s %d", a.ID, a.State, a.Status, a.Since-start.Unix()))
	}
	for _, c := range p.Calls() {
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %d", c.ID, c.State, c.Queue, c.Agent, c.Since-start.Unix())), " "))
	}
	return strings.Join(lines, "\n")
}

// golden are the messages that the normalizer makes of its samples.
func golden(t testing.TB, name string) []Message {
	t.Helper()
	paths, _ := filepath.Glob("../../format/*/testdata/" + name + ".want.jsonl")
	if len(paths) != 1 {
		t.Fatalf("%d golden files named %s", len(paths), name)
	}
	f, err := os.Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []Message
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			Type      event.Type      `json:"type"`
			Account   string          `json:"account_id"`
			Timestamp int64           `json:"timestamp"`
			Data      json.RawMessage `json:"data"`
			Metadata  struct {
				Format string `json:"original_format"`
			} `json:"metadata"`
		}
		if !strings.HasPrefix(lines.Text(), `{"id"`) { // a dead letter
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, Message{Account: m.Account, Type: m.Type, Format: m.Metadata.Format, Timestamp: m.Timestamp, Data: m.Data})
	}
	if err := lines.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%d messages: %v", len(all), err)
	}
	return all
}

// A session of mod_callcenter as it was captured: one agent, one caller.
func TestCapturedSession(t *testing.T) {
	const (
		agent = "1002@127.0.0.20 "
		call  = "05eb7b8e-c2af-4508-bea8-19f36e5d169a "
		queue = " support@127.0.0.20"
	)
	want := []string{
		agent + "/Available 31",
		agent + "/Available 31\n" + call + "waiting" + queue + " 31",
		agent + "/Available 31\n" + call + "waiting" + queue + " 31", // members-count
		agent + "Receiving/Available 31\n" + call + "waiting" + queue + " 31",
		agent + "Receiving/Available 31\n" + call + "offering" + queue + " 1002@127.0.0.20 31",
		agent + "Receiving/Available 31\n" + call + "answered" + queue + " 1002@127.0.0.20 32",
		agent + "Receiving/Available 31\n" + call + "answered" + queue + " 1002@127.0.0.20 32", // members-count
		agent + "In a queue call/Available 32\n" + call + "answered" + queue + " 1002@127.0.0.20 32",
		agent + "In a queue call/Available 32", // bridge-agent-end
		agent + "In a queue call/Available 32", // member-queue-end
		agent + "Waiting/Available 35",
		agent + "Waiting/On Break 38",
		"",
	}
	messages := golden(t, "freeswitch.callcenter/captured")
	if len(messages) != len(want) {
		t.Fatalf("%d messages, want %d", len(messages), len(want))
	}
	p := newPlayer(testBounds)
	for i, m := range messages {
		if p.play(m); p.shows() != want[i] {
			t.Errorf("after message %d:\n%s\nwant:\n%s", i, p.shows(), want[i])
		}
	}
}

func TestWhatEachFormatSays(t *testing.T) {
	const callEvent = `{"Queue-ID":"q","CDR":{"Call-ID":"c","Event":"%s"},"customer_info":{"customer_uuid":"u"},"history":[{"type":"queue","event":"entered"}%s]}`
	for _, c := range []struct {
		name, format string
		says         []any // type, data, what is seen then; …
	}{
		{"svc.cc, a call", "svc.cc", []any{
			event.QueueCall, fmt.Sprintf(callEvent, "CHANNEL_CREATE", ""), "c waiting q 1",
			event.QueueCall, fmt.Sprintf(callEvent, "CHANNEL_PROGRESS", `,{"type":"agent","ext":"7","event":"offered"}`), "c offering q 7 2",
			event.QueueCall, fmt.Sprintf(callEvent, "CHANNEL_UNBRIDGE", `,{"type":"agent","ext":"7","event":"missed"}`), "c waiting q 3",
			event.QueueCall, fmt.Sprintf(callEvent, "CHANNEL_ANSWER", `,{"type":"agent","ext":"8","event":"answered"}`), "c answered q 8 4",
			event.QueueCall, fmt.Sprintf(callEvent, "start-talking", `,{"type":"agent","ext":"8","event":"answered"}`), "c answered q 8 4",
			event.AgentTransfer, `{"call_id":"c","agent_id":"8","to_agent_id":"9"}`, "c answered q 9 4",
			event.QueueCall, fmt.Sprintf(callEvent, "CHANNEL_DESTROY", ""), "",
			event.QueueCall, fmt.Sprintf(callEvent, "CHANNEL_ANSWER", ""), "", // a straggler
		}},
		{"svc.cc, a call told by its history", "svc.cc", []any{
			event.QueueCall, `{"customer_info":{"customer_uuid":"u"},"history":[{"event":"entered"},{"type":"agent","ext":"7","event":"answered"}]}`, "u answered 7 1",
			event.QueueCall, `{"CDR":{"Call-ID":"v","Event":"add-member"}}`, "u answered 7 1", // not told
		}},
		{"svc.cc, an agent", "svc.cc", []any{
			event.AgentState, `{"Agent-ID":"7","Agent-State":"idle"}`, "7 idle/ 1",
			event.AgentState, `{"Agent-ID":"7","Agent-State":"idle"}`, "7 idle/ 1",
			event.AgentState, `{"Agent-ID":"7","Agent-State":"on-call","Agent-Status":"busy"}`, "7 on-call/busy 3",
			event.AgentState, `{"Agent-ID":"7","Agent-State":"logged-out"}`, "",
			event.AgentState, `{"Agent-ID":"7","Agent-State":"idle"}`, "7 idle/ 5",
		}},
		{"generic, an agent's day", "generic", []any{
			event.AgentLogin, `{"data":{"agent_id":"7"}}`, "7 /logged_in 1",
			event.AgentStatus, `{"data":{"agent_id":"7","state":"idle"}}`, "7 idle/logged_in 2",
			event.AgentCallStart, `{"data":{"agent_id":"7","call_id":"c","queue_id":"q"}}`, "7 on_call/logged_in 3\nc answered q 7 3",
			event.AgentTransfer, `{"data":{"agent_id":"7","to_agent_id":"8","call_id":"c"}}`, "7 on_call/logged_in 3\nc answered q 8 3",
			event.AgentCallEnd, `{"data":{"agent_id":"7","call_id":"c"}}`, "7 after_call/logged_in 5\nc answered q 8 3",
			event.AgentCallEnd, `{"data":{"agent_id":"8","call_id":"c","state":"wrap-up"}}`, "7 after_call/logged_in 5\n8 wrap-up/ 6",
			event.AgentBreakStart, `{"data":{"agent_id":"7"}}`, "7 after_call/on_break 7\n8 wrap-up/ 6",
			event.AgentBreakEnd, `{"agent_id":"7"}`, "7 after_call/logged_in 8\n8 wrap-up/ 6",
			event.AgentLogout, `{"data":{"agent_id":"7"}}`, "8 wrap-up/ 6",
			event.AgentLogout, `{"data":{"agent_id":"8"}}`, "",
		}},
		{"mod_callcenter, a call that nobody answers", "freeswitch.callcenter", []any{
			event.QueueCall, `{"CC-Action":"member-queue-start","CC-Queue":"q%20one","CC-Member-UUID":"m"}`, "m waiting q one 1",
			event.QueueCall, `{"CC-Action":"agent-offering","CC-Queue":"q%20one","CC-Member-UUID":"m","CC-Agent":"a"}`, "m offering q one a 2",
			event.QueueCall, `{"CC-Action":"bridge-agent-fail","CC-Queue":"q%20one","CC-Member-UUID":"m","CC-Agent":"a"}`, "m waiting q one 3",
			event.QueueCall, `{"CC-Action":"member-queue-end","CC-Member-UUID":"m","CC-Cause":"Cancel"}`, "",
			event.QueueCall, `{"CC-Action":"agent-offering","CC-Member-UUID":"m","CC-Agent":"a"}`, "",
			event.QueueCall, `{"CC-Action":"member-queue-resume","CC-Queue":"r","CC-Member-UUID":"m"}`, "m waiting r 6",
		}},
		{"mod_callcenter, states after the logout", "freeswitch.event", []any{
			event.AgentState, `{"CC-Action":"agent-state-change","CC-Agent":"a","CC-Agent-State":"In a queue call"}`, "a In a queue call/ 1",
			event.AgentLogout, `{"CC-Action":"agent-status-change","CC-Agent":"a","CC-Agent-Status":"Logged Out"}`, "",
			event.AgentState, `{"CC-Action":"agent-state-change","CC-Agent":"a","CC-Agent-State":"Waiting"}`, "",
			event.AgentState, `{"CC-Action":"agent-status-change","CC-Agent":"a","CC-Agent-Status":"Available (On%20Demand)"}`, "a /Available (On Demand) 4",
		}},
		{"ACDc, a call", "kazoo.acdc", []any{
			event.QueueCall, `{"Event-Category":"member","Event-Name":"call","Queue-ID":"q","Call":{"Call-ID":"c"}}`, "c waiting q 1",
			event.QueueCall, `{"event_category":"acdc_call_stat","event_name":"waiting","call_id":"c","queue_id":"q"}`, "c waiting q 1",
			event.QueueCall, `{"event_category":"acdc_call_stat","event_name":"missed","call_id":"c","agent_id":"a"}`, "c waiting q 1",
			event.QueueCall, `{"event_category":"acdc_call_stat","event_name":"handled","call_id":"c","agent_id":"b"}`, "c answered q b 4",
			event.QueueCall, `{"action":"event","name":"n","data":{"event_category":"acdc_call_stat","event_name":"processed","call_id":"c"}}`, "",
		}},
		{"ACDc, an agent", "kazoo.acdc", []any{
			event.AgentLogin, `{"Event-Category":"agent","Event-Name":"login","Agent-ID":"a"}`, "a logged_in/ 1",
			event.AgentState, `{"Event-Category":"acdc_status_stat","Event-Name":"ready","Agent-ID":"a"}`, "a ready/ 2",
			event.AgentState, `{"Event-Category":"queue","Event-Name":"agent_change","Change":"ringing","Agent-ID":"a"}`, "a ready/ringing 3",
			event.AgentBreakStart, `{"Event-Category":"agent","Event-Name":"pause","Agent-ID":"a"}`, "a paused/ringing 4",
			event.AgentBreakEnd, `{"Event-Category":"agent","Event-Name":"resume","Agent-ID":"a"}`, "a ready/ringing 5",
			event.AgentLogout, `{"Event-Category":"acdc_status_stat","Event-Name":"logged_out","Agent-ID":"a"}`, "",
			event.AgentState, `{"Event-Category":"queue","Event-Name":"agent_change","Change":"unavailable","Agent-ID":"a"}`, "",
		}},
		{"ACDc's webhook", "kazoo.webhook", []any{
			event.QueueCall, `{"call_state":"pickup","queue_id":"q","agent_id":"a","member_call_id":"m"}`, "m answered q a 1",
			event.QueueCall, `{"call_state":"hangup","queue_id":"q","agent_id":"a","member_call_id":"m"}`, "",
		}},
		{"Qubicle", "kazoo.qubicle", []any{
			event.AgentLogin, `{"event_category":"qubicle-recipient","event_name":"create","recipient_id":"r","state":"away"}`, "r away/ 1",
			event.AgentState, `{"event_category":"qubicle_recipient","event_name":"ready","recipient_id":"r"}`, "r ready/ 2",
			event.QueueCall, `{"name":"x","args":{"Event-Category":"qubicle-session","Event-Name":"create","Session-ID":"s","Call-ID":"c","Join-Queue-ID":"q"}}`, "r ready/ 2\ns waiting q 3",
			event.QueueCall, `{"Event-Category":"qubicle-session","Event-Name":"handled","Session-ID":"s","Recipient-ID":"r"}`, "r ready/ 2\ns answered q r 4",
			event.QueueCall, `{"Event-Category":"qubicle-session","Event-Name":"delete","Session-ID":"s"}`, "r ready/ 2",
			event.AgentLogout, `{"event_category":"qubicle-recipient","event_name":"delete","recipient_id":"r"}`, "",
		}},
		{"what changes nothing", "generic", []any{
			event.AgentLogin, `{"data":{"agent_id":"7"}}`, "7 /logged_in 1",
			event.AgentLogout, `{"data":{"agent_id":7}}`, "7 /logged_in 1",
			event.AgentLogout, `{"data":{"agent_id":"7"}`, "7 /logged_in 1",
			event.AgentLogout, `["7"]`, "7 /logged_in 1",
			event.AgentLogin, `{"agent_id":"` + strings.Repeat("7", maxText) + `"}`, "7 /logged_in 1",
			event.AgentStatus, `{"data":{"agent_id":"8"}}`, "7 /logged_in 1",
			event.AgentPerform, `{"data":{"agent_id":"8","state":"x"}}`, "7 /logged_in 1",
			event.AgentCallStart, `{}`, "7 /logged_in 1",
			event.QueueCall, `{"data":{"call_id":"c","state":"dreaming"}}`, "7 /logged_in 1",
		}},
		{"an unknown format", "unknown", []any{event.AgentLogin, `{"agent_id":"7"}`, ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlayer(testBounds)
			for i := 0; i < len(c.says); i += 3 {
				p.play(Message{Account: "a", Type: c.says[i].(event.Type), Format: c.format, Data: []byte(c.says[i+1].(string))})
				if got := p.shows(); got != c.says[i+2] {
					t.Errorf("after %s %s:\n%s\nwant:\n%s", c.says[i], c.says[i+1], got, c.says[i+2])
				}
			}
		})
	}
}

func login(account, agent string) Message {
	return Message{Account: account, Type: event.AgentLogin, Format: "generic", Data: []byte(`{"agent_id":"` + agent + `"}`)}
}

func logout(account, agent string) Message {
	m := login(account, agent)
	m.Type = event.AgentLogout
	return m
}

func calls(account, call, action string) Message {
	return Message{Account: account, Type: event.QueueCall, Format: "freeswitch.callcenter",
		Data: []byte(`{"CC-Action":"` + action + `","CC-Member-UUID":"` + call + `"}`)}
}

func TestWhatIsNotHeardOfIsForgotten(t *testing.T) {
	p := newPlayer(Config{AgentAge: 2 * time.Hour, CallAge: time.Hour, PerAccount: 9, Budget: NewBudget(1 << 20)})
	p.play(login("a", "7"))
	p.play(calls("a", "c", "member-queue-start"))
	p.now = p.now.Add(time.Hour - time.Second)
	p.play(calls("a", "other", "member-queue-end"))
	if got := p.shows(); got != "7 /logged_in 1\nc waiting 2" {
		t.Errorf("just before the hour: %s", got)
	}
	p.now = p.now.Add(time.Millisecond)
	if got := p.shows(); got != "7 /logged_in 1" {
		t.Errorf("nothing came, and still an hour has gone: %s", got)
	}
	p.play(calls("a", "c", "bridge-agent-start"))
	if got := p.shows(); !strings.Contains(got, "c answered 3603") {
		t.Errorf("a call that is heard of again begins again: %s", got)
	}
	p.now = p.now.Add(2 * time.Hour)
	p.play(calls("a", "other", "member-queue-end"))
	if agents, calls, dropped := p.Sizes(); agents != 0 || calls != 0 || dropped != 0 {
		t.Errorf("%d agents and %d calls are still in memory, %d dropped", agents, calls, dropped)
	}
}

func TestTheLongestUnheardOfMakesRoom(t *testing.T) {
	p := newPlayer(Config{AgentAge: day, CallAge: day, PerAccount: 2, Budget: NewBudget(3*(entryBytes+20) + 2*accountBytes)})
	for _, agent := range []string{"1", "2", "1", "3"} { // 2 goes
		p.play(login("a", agent))
	}
	p.play(login("b", "4"))
	p.play(login("b", "5")) // 1 goes, of all
	if got := p.shows(); got != "3 /logged_in 4\n4 /logged_in 5\n5 /logged_in 6" {
		t.Errorf("got %s", got)
	}
	if agents, _, dropped := p.Sizes(); agents != 3 || dropped != 2 {
		t.Errorf("%d agents, %d dropped", agents, dropped)
	}
	for i := range 100 {
		p.play(logout("a", fmt.Sprint(i)))
	}
	if n := len(p.agents.ended.entries); n > 3 {
		t.Errorf("%d that have ended are remembered", n)
	}
}

func TestPartitionsArePutTogether(t *testing.T) {
	one, two := newPlayer(testBounds), newPlayer(testBounds)
	one.play(login("a", "7"))
	one.play(login("a", "8"))
	one.play(calls("a", "c", "member-queue-start"))
	two.now = one.now
	two.play(logout("a", "7")) // later than the login elsewhere
	two.play(login("b", "7"))
	two.play(calls("a", "c", "bridge-agent-start"))
	one.now = two.now
	one.play(login("a", "9"))
	two.now = one.now
	picture := NewView()
	for _, p := range []*player{two, one} {
		picture.Add(p.State, func(account string) bool { return account == "a" }, two.now)
	}
	if got := shows(picture); got != "8 /logged_in 2\n9 /logged_in 7\nc answered 6" {
		t.Errorf("got %s", got)
	}
	other := NewView()
	for _, p := range []*player{one, two} {
		other.Add(p.State, func(account string) bool { return account == "a" }, two.now)
	}
	if shows(other) != shows(picture) {
		t.Errorf("the order of the partitions matters: %s", shows(other))
	}
}

// What a state holds follows from the messages of its window alone: one that
// began a window later holds the same.
func TestFoldingFromLaterOnGivesTheSame(t *testing.T) {
	bounds := Config{AgentAge: time.Minute, CallAge: time.Minute, PerAccount: 1000, Budget: NewBudget(1 << 20)}
	early, late := newPlayer(bounds), newPlayer(bounds)
	for i := range 300 {
		agent, call := fmt.Sprint("agent", i%90), fmt.Sprint("call", i/3)
		for _, m := range []Message{login("a", agent), calls("a", call, "member-queue-start"), calls("a", call, "agent-offering")} {
			early.play(m)
			if early.last >= event.FirstID(start.Add(10*time.Minute), 3) {
				late.last, late.now = early.last, early.now
				m.ID, m.Timestamp = early.last, early.now.Unix()
				late.Apply(m)
			}
		}
	}
	if got, want := late.shows(), early.shows(); got != want || !strings.Contains(want, "offering") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzApply(f *testing.F) {
	paths := []string{"freeswitch.callcenter/captured", "freeswitch.callcenter/actions", "kazoo.acdc/records", "kazoo.qubicle/records",
		"kazoo.webhook/records", "svc.cc/records", "generic/records"}
	for _, path := range paths {
		for _, m := range golden(f, path) {
			f.Add(m.Format, string(m.Type), []byte(m.Data))
		}
	}
	f.Fuzz(func(t *testing.T, format, kind string, data []byte) {
		p := newPlayer(Config{AgentAge: day, CallAge: day, PerAccount: 2, Budget: NewBudget(1 << 20)})
		p.play(login("a", "7"))
		p.play(calls("a", "c", "member-queue-start"))
		before := p.shows()
		p.play(Message{Account: "a", Type: event.Type(kind), Format: format, Data: data})
		picture := NewView()
		picture.Add(p.State, everybody, p.now)
		if !json.Valid(data) && p.shows() != before {
			t.Fatalf("malformed data changed\n%s\nto\n%s", before, p.shows())
		}
		if len(picture.Agents()) > 2 || len(picture.Calls()) > 2 {
			t.Fatalf("too much: %s", p.shows())
		}
		for _, c := range picture.Calls() {
			if !slices.Contains([]CallState{Waiting, Offering, Answered}, c.State) {
				t.Fatalf("call in the state %q", c.State)
			}
		}
		for _, a := range picture.Agents() {
			if a.ID == "" || a.State == "" && a.Status == "" || len(a.State) > 3*maxText {
				t.Fatalf("agent %+v", a)
			}
		}
		again := newPlayer(Config{AgentAge: day, CallAge: day, PerAccount: 2, Budget: NewBudget(1 << 20)})
		again.play(login("a", "7"))
		again.play(calls("a", "c", "member-queue-start"))
		again.play(Message{Account: "a", Type: event.Type(kind), Format: format, Data: slices.Clone(data)})
		if again.shows() != p.shows() {
			t.Fatal("the same messages gave another floor")
		}
	})
}
