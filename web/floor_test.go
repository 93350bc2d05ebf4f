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
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/fanout/snapshot"
)

// message is one of the channel, as both folds read it.
type message struct {
	ID        string          `json:"id"`
	Type      event.Type      `json:"type"`
	Account   string          `json:"account_id"`
	Timestamp int64           `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
	Metadata  struct {
		Format string `json:"original_format"`
		Queue  string `json:"queue_id,omitempty"`
	} `json:"metadata"`

	id      event.ID
	restart bool
}

func (m message) line(t *testing.T) []byte {
	if m.restart {
		return []byte("{\"restart\": true}\n")
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

var begins = time.UnixMilli(1_795_169_700_000)

// normalized are the messages that the normalizer makes of its samples.
func normalized(t *testing.T) (sessions [][]message) {
	t.Helper()
	files, err := filepath.Glob("../format/*/testdata/*/*.want.jsonl")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files of samples, %v", len(files), err)
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

// odd are messages that no source sends, and any stranger may.
func odd() (all []message) {
	for _, format := range []string{"svc.cc", "generic", "freeswitch.callcenter", "freeswitch.event", "kazoo.acdc", "kazoo.qubicle", "kazoo.webhook", "unknown"} {
		for _, kind := range event.Types() {
			for _, data := range []string{
				`{}`, `{"data":null}`, `{"data":[]}`, `{"agent_id":7,"state":"x"}`, `{"agent_id":"7","Agent-ID":"8","state":"x","Agent-State":"y"}`,
				`{"Agent-ID":"8","agent_id":"7","Agent-State":"y","state":"x","status":"z"}`, `{"data":{"agent_id":"7","state":"on-call"},"agent_id":"9","call_id":"c"}`,
				`{"agent_id":"7","status":"Logged Out"}`, `{"Call-ID":"c","Event":"entered"}`, `{"CDR":{"Call-ID":"c","Event":"CHANNEL_ANSWER"},"history":[{"type":"agent","ext":"8"}]}`,
				`{"history":[{"event":"entered"},7],"call_id":"c"}`, `{"history":[]}`, `{"history":{},"customer_info":{"customer_uuid":"u"},"Event":"offered"}`,
				`{"CC-Action":"agent-status-change","CC-Agent":"a%20b%zz","CC-Agent-Status":"On Break"}`, `{"CC-Action":"agent-status-change","CC-Agent":"a%20b%C3%A4","CC-Agent-Status":"On%20Break"}`,
				`{"CC-Action":"member-queue-start","CC-Member-UUID":"m%ff","CC-Queue":"` + strings.Repeat("q", 300) + `"}`,
				`{"CC-Action":"agent-offering","CC-Member-UUID":"m","CC-Agent":"` + strings.Repeat("é", 140) + `"}`, `{"CC-Action":"agent-state-change","CC-Agent":"a","CC-Agent-State":"` + strings.Repeat("s", 254) + `"}`,
				`{"CC-Action":"agent-state-change","CC-Agent":"a","CC-Agent-State":"` + strings.Repeat("s", 255) + `"}`,
				`{"action":"event","data":{"event_category":"agent","event_name":"constructor","agent_id":"a"}}`, `{"args":{"Event-Category":"agent","Event-Name":"toString","Agent-ID":"a"}}`,
				`{"event_category":"acdc_call_stat","event_name":"handled","Call":{"Call-ID":"c"},"agent_id":"b"}`, `{"event_category":"queue","event_name":"member_add","call":{"call_id":"k"},"queue_id":"q"}`,
				`{"call_state":"pickup","member_call_id":"c","agent_id":"a"}`, `{"call_state":"hangup","member_call_id":"c"}`, `{"event_category":5,"event_name":"x"}`,
				`{"__proto__":{"agent_id":"7"},"agent_id":"p","state":"hasOwnProperty"}`, `{"State":"a","state":"b","agent_id":"7"}`, `{"state":"b","State":"a","agent_id":"7"}`,
			} {
				m := message{Type: kind, Account: "a", Data: json.RawMessage(data)}
				m.Metadata.Format = format
				all = append(all, m)
			}
		}
	}
	return all
}

// everyWord has a call that rings meet each word that either fold knows.
func everyWord(t *testing.T) (all []message) {
	t.Helper()
	word := regexp.MustCompile(`[a-z_]{4,}`)
	var words []string
	for _, file := range []string{"../fanout/snapshot/transitions.go", "static/words.js"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, word.FindAllString(string(text), -1)...)
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if !slices.Contains(words, "channel_unbridge") || !slices.Contains(words, "loggedout") {
		t.Fatalf("the words are %v", words)
	}
	tell := func(kind event.Type, data string) {
		m := message{Type: kind, Account: "a", Data: json.RawMessage(data)}
		m.Metadata.Format = "generic"
		all = append(all, m)
	}
	for _, w := range words {
		all = append(all, message{restart: true})
		tell(event.QueueCall, `{"call_id":"c","Event":"offered","agent_id":"7"}`)
		tell(event.QueueCall, `{"call_id":"c","Event":"`+w+`","agent_id":"8"}`)
		tell(event.QueueCall, `{"call_id":"d","Event":"`+strings.ToUpper(strings.ReplaceAll(w, "_", "-"))+`"}`)
		tell(event.AgentStatus, `{"agent_id":"7","state":"idle"}`)
		tell(event.AgentStatus, `{"agent_id":"7","status":"`+w+`"}`)
	}
	return all
}

// TestTheBoardFoldsAsTheServerDoes has the board's floor and fanout's take in the
// same messages: the samples of every source as they are, then all of them and
// the odd ones in random orders, over few accounts.
func TestTheBoardFoldsAsTheServerDoes(t *testing.T) {
	var all []message
	pool := odd()
	for _, session := range normalized(t) {
		all = append(append(all, message{restart: true}), session...)
		pool = append(pool, session...)
	}
	all = append(all, everyWord(t)...)
	random := rand.New(rand.NewPCG(7, 42))
	for range 30 {
		all = append(all, message{restart: true})
		for range 300 {
			m := pool[random.IntN(len(pool))]
			m.Account = []string{"a", "b"}[random.IntN(2)]
			all = append(all, m)
		}
	}
	now, id := begins, event.ID(0)
	for i := range all {
		now = now.Add(time.Duration(random.IntN(3)) * time.Second)
		if random.IntN(200) == 0 {
			now = now.Add(13 * time.Hour) // some is forgotten
		}
		id = event.NextID(id, now.UnixMilli(), 3)
		all[i].id, all[i].ID, all[i].Timestamp = id, id.String(), now.Unix()
	}
	got := folded(t, all)
	bounds := snapshot.Config{AgentAge: 24 * time.Hour, CallAge: 24 * time.Hour, PerAccount: 20000, Budget: snapshot.NewBudget(1 << 30)}
	f, shown := snapshot.New(bounds), 0
	for i, m := range all {
		if m.restart {
			f = snapshot.New(bounds)
		} else {
			f.Apply(snapshot.Message{ID: m.id, Account: m.Account, Type: m.Type, Format: m.Metadata.Format, Queue: m.Metadata.Queue, Timestamp: m.Timestamp, Data: m.Data})
		}
		// The server looks at what it has forgotten by now; the board at the next message.
		want := inShort(f, time.Unix(0, int64(m.id)))
		shown = max(shown, len(want))
		if snapshot.IsRelevant(m.Type) && !slices.Equal(got[i], want) {
			t.Fatalf("message %d, %s %s %s:\nthe board  %q\nthe server %q", i, m.Metadata.Format, m.Type, m.Data, got[i], want)
		}
	}
	if shown < 8 {
		t.Errorf("at most %d were on the floor", shown)
	}
	t.Logf("%d messages, at most %d agents and calls at once", len(all), shown)
}

// folded is the board's floor after each message.
func folded(t *testing.T, all []message) [][]string {
	t.Helper()
	var input bytes.Buffer
	for _, m := range all {
		input.Write(m.line(t))
	}
	cmd := exec.CommandContext(t.Context(), node(t), "jstest/fold.js")
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = &input, &errs
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var floors [][]string
	for line := range bytes.Lines(output) {
		var shown []string
		if err := json.Unmarshal(line, &shown); err != nil {
			t.Fatal(err)
		}
		floors = append(floors, shown)
	}
	if len(floors) != len(all) {
		t.Fatalf("%d floors of %d messages", len(floors), len(all))
	}
	return floors
}

func inShort(f *snapshot.State, now time.Time) []string {
	picture := snapshot.NewView()
	picture.Add(f, func(string) bool { return true }, now)
	shown := []string{}
	for _, a := range picture.Agents() {
		shown = append(shown, fmt.Sprintf("agent|%s|%s|%s|%s|%d", a.Account, a.ID, a.State, a.Status, a.Since))
	}
	for _, c := range picture.Calls() {
		shown = append(shown, fmt.Sprintf("call|%s|%s|%s|%s|%s|%d", c.Account, c.ID, c.State, c.Queue, c.Agent, c.Since))
	}
	slices.Sort(shown)
	return shown
}
