package stats

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/registry"
)

// The stories in testdata/stories were told wrongly once. Each is told here in every order of
// its simultaneous events, with what is right at each instant: who is in which state, since
// when and why.

// storyEvent is an event of a story.
type storyEvent struct {
	atMS   int64
	event  format.Event
	record []byte
}

// readStory reads a story: a JSON array, or compressed lines.
func readStory(t *testing.T, file string) []storyEvent {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "stories", file))
	if err != nil {
		t.Fatal(err)
	}

	var records []json.RawMessage
	if strings.HasSuffix(file, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}

		text, err = io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}

		for line := range bytes.Lines(text) {
			records = append(records, line)
		}
	} else if err := json.Unmarshal(text, &records); err != nil {
		t.Fatal(err)
	}

	return readRecords(t, records)
}

// readRecords reads the records of a story.
func readRecords(t *testing.T, records []json.RawMessage) (story []storyEvent) {
	t.Helper()
	var scratch registry.Scratch
	for _, record := range records {
		f, _, err := registry.Recognise(event.TopicRaw, record, &scratch)
		if err != nil {
			t.Fatal(err)
		}

		var fields format.Fields
		e, err := f.ReadEvent(record, &fields)
		if err != nil {
			t.Fatal(err)
		}

		story = append(story, storyEvent{e.Facts.TimestampMS, e, record})
	}

	return story
}

// orders returns the story in the order in which it was told and, for each instant with
// several events, in each order of these (of up to four; of more, in some).
func orders(story []storyEvent) (all [][]storyEvent) {
	all = [][]storyEvent{story}
	for start := 0; start < len(story); {
		end := start + 1
		for end < len(story) && story[end].atMS == story[start].atMS {
			end++
		}

		for _, order := range permutations(end - start) {
			other := slices.Clone(story)
			for i, from := range order {
				other[start+i] = story[start+from]
			}

			if keepsReportsOfAFact(story[start:end], order) {
				all = append(all, other)
			}
		}

		start = end
	}

	return all
}

// keepsReportsOfAFact reports whether an order keeps that of reports of the same fact, of which the last
// one holds.
func keepsReportsOfAFact(instant []storyEvent, order []int) bool {
	for i, first := range order {
		for _, second := range order[i+1:] {
			was, is := &instant[second].event.Facts, &instant[first].event.Facts
			if second < first && (sameFact(was, is) || followsFrom(was, is)) {
				return false
			}
		}
	}
	return true
}

func sameFact(a, b *event.Facts) bool {
	if a.Agent == nil || b.Agent == nil || a.AgentID != b.AgentID {
		return false
	}
	return a.Agent.Presence != "" && b.Agent.Presence != "" || a.Agent.Activity != "" && b.Agent.Activity != "" ||
		a.Agent.Device != "" && b.Agent.Device != "" && a.QueueID == b.QueueID
}

// followsFrom reports whether an event of a call follows from another: a visit ends by a
// transfer, and the next one begins after its end.
func followsFrom(was, is *event.Facts) bool {
	return was.CallID == is.CallID && (was.Name == event.NameCallTransferred && is.Name == event.NameQueueCallEnded ||
		was.Name == event.NameQueueCallEnded && is.Name == event.NameQueueCallEntered)
}

// permutations returns the orders of n things but the first one; of more than four, each
// rotation and the reverse.
func permutations(n int) (all [][]int) {
	if n > 4 {
		for first := 1; first < n; first++ {
			var order []int
			for i := range n {
				order = append(order, (first+i)%n)
			}
			all = append(all, order)
		}

		var reverse []int
		for i := range n {
			reverse = append(reverse, n-1-i)
		}

		return append(all, reverse)
	}

	var extend func(prefix []int)
	extend = func(prefix []int) {
		if len(prefix) == n {
			if !slices.IsSorted(prefix) {
				all = append(all, slices.Clone(prefix))
			}
			return
		}

		for i := range n {
			if !slices.Contains(prefix, i) {
				extend(append(prefix, i))
			}
		}
	}

	extend(nil)
	return all
}

// floor is the state of an account as a snapshot shows it.
func floor(p *state.Partition, startMS int64) string {
	var lines []string
	waiting, talking := map[string]int{}, map[string]int{}
	for _, e := range p.All() {
		if !e.Live() {
			continue
		}

		since := e.Since - startMS/1000
		switch e.Kind {
		case state.Agent:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %d %s", e.ID, e.State, since, e.Reason)))
		case state.Call:
			if !e.IsLiveVisit() {
				break
			}

			if e.State == event.Talking || e.State == event.Held {
				talking[e.QueueID]++
			} else {
				waiting[e.QueueID]++
			}
		}
	}

	for queue, n := range waiting {
		lines = append(lines, fmt.Sprintf("%s waiting %d", queue, n))
	}

	for queue, n := range talking {
		lines = append(lines, fmt.Sprintf("%s talking %d", queue, n))
	}

	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// foldStory folds a story, and returns the floor after each instant and the figures after the
// last one.
func foldStory(t *testing.T, story []storyEvent, messages *state.Partition) (floors map[int64]string, figures *Fold) {
	t.Helper()
	figures, floors = NewFold(testRules()), map[int64]string{}
	partition, start := state.NewPartition(), story[0].atMS
	var last event.ID

	for i := range story {
		one := &story[i]
		last = event.NextID(last, one.atMS, 0)
		e := state.Event{ID: last, Account: account, Timestamp: one.event.Timestamp, Facts: one.event.Facts}
		partition.CompleteAndFold(&e)
		figures.Apply(&e)
		messages.FoldCompleted(&e)
		checkAgreement(t, partition)
		floors[(one.atMS-start)/1000] = floor(partition, start)
	}

	for _, e := range partition.All() { // what was folded from the messages is the same
		if other := messages.Find(e.Key()); other == nil || string(other.Append(nil)) != string(e.Append(nil)) {
			t.Fatalf("the fold of the messages has %s, not %s", other.Append(nil), e.Append(nil))
		}
	}

	for range 20 { // what is due by time alone
		last = event.NextID(last, last.Milli()+60_000, 0)
		figures.Advance(last)
	}

	return floors, figures
}

// checkAgreement checks that agents and calls agree.
func checkAgreement(t *testing.T, p *state.Partition) {
	t.Helper()
	entry := func(of *state.Entry, kind state.Kind, id string) *state.Entry {
		return p.Find(state.Key{Account: of.AccountID, Kind: kind, ID: id})
	}

	for _, e := range p.All() {
		switch {
		case e.Kind == state.Agent && e.KnownAgent != nil:
			for _, c := range e.KnownAgent.Calls {
				call := entry(e, state.Call, c.ID)
				if call == nil || !call.Live() || !c.Ringing && call.AgentID != e.ID ||
					c.Ringing && !slices.Contains(call.Ringing, e.ID) {
					t.Fatalf("agent %s has the call %s: %s", e.Append(nil), c.ID, appended(call))
				}
			}

			if len(e.KnownAgent.Calls) > 0 && e.State != event.Talking && e.State != event.Ringing {
				t.Fatalf("agent %s has calls", e.Append(nil))
			}
		case e.Kind == state.Call && e.Live() && e.AgentID != "":
			agent := entry(e, state.Agent, e.AgentID)
			if agent == nil || !agent.Live() ||
				agent.State != event.Talking && (agent.State != event.Ringing || e.State != event.Ringing) {
				t.Fatalf("call %s is with %s", e.Append(nil), appended(agent))
			}
		}
	}
}

func appended(e *state.Entry) string {
	if e == nil {
		return "none"
	}
	return string(e.Append(nil))
}

// sums adds up the figures of one agent and of one queue.
func (f *Fold) sums(agent, queue string) (a AgentRow, q QueueRow) {
	for k, e := range f.table.entries {
		switch row := e.(type) {
		case *AgentRow:
			if k.id.Value() == agent {
				a.TalkingMS += row.TalkingMS
				a.WrapUpMS += row.WrapUpMS
				a.BreakMS += row.BreakMS
				a.AvailableMS += row.AvailableMS
				a.Offered += row.Offered
				a.Answered += row.Answered
				a.NoAnswer += row.NoAnswer
			}
		case *QueueRow:
			if k.id.Value() == queue {
				q.Offered += row.Offered
				q.Answered += row.Answered
				q.Abandoned += row.Abandoned
				q.Transferred += row.Transferred
				q.WrapUpMS += row.WrapUpMS
			}
		}
	}

	return a, q
}

func TestStoriesAreToldRightInEveryOrder(t *testing.T) {
	type right struct {
		floors map[int64]string // after the events of a second of the story
		agent  string
		queue  string
		want   func(AgentRow, QueueRow) string // "" if the figures are right
	}

	talks := func(seconds int64) func(AgentRow, QueueRow) string {
		return func(a AgentRow, q QueueRow) string {
			if got := (a.TalkingMS + 500) / 1000; got != seconds {
				return fmt.Sprintf("talking %d s, want %d", got, seconds)
			}
			return ""
		}
	}

	transferredOnce := func(_ AgentRow, q QueueRow) string {
		return differ(QueueRow{Offered: 1, Answered: 1, Transferred: 1}, q)
	}
	answeredOnce := func(_ AgentRow, q QueueRow) string {
		return differ(QueueRow{Offered: 1, Answered: 1}, q)
	}
	for file, r := range map[string]right{
		"asterisk-two-calls.json": {map[int64]string{
			0:   "PJSIP/140 available 0",
			6:   "PJSIP/140 ringing 6, g-two waiting 1",
			10:  "PJSIP/140 talking 10, g-two talking 1",
			21:  "PJSIP/140 talking 10, g-two talking 1, g-two waiting 1",
			25:  "PJSIP/140 talking 10, g-two talking 2",
			40:  "PJSIP/140 talking 10, g-two talking 1",
			340: "PJSIP/140 available 340",
		}, "PJSIP/140", "g-two", talks(330)},
		"asterisk-sent-on-from-local.json": {map[int64]string{
			11: "400 waiting 1, Local/101@from-queue/n ringing 11",
			15: "400 talking 1, Local/101@from-queue/n talking 15",
			75: "Local/101@from-queue/n available 75", // the caller talks to somebody else
		}, "Local/101@from-queue/n", "400", talks(60)},
		"asterisk-do-not-disturb.json": {map[int64]string{
			0: "PJSIP/108 available 0", 30: "PJSIP/108 other 30 busy", 630: "PJSIP/108 available 630",
		}, "PJSIP/108", "a8-sales", talks(0)},
		"asterisk-sent-on-behind-local.json": {map[int64]string{
			0: "Local/1008@from-queue/n ringing 1, pbx waiting 1",
			1: "Local/1008@from-queue/n talking 2, pbx talking 1",
			2: "Local/1008@from-queue/n wrap_up 3",
		}, "Local/1008@from-queue/n", "pbx", func(a AgentRow, q QueueRow) string {
			return cmp.Or(talks(1)(a, q),
				differ(QueueRow{Offered: 1, Answered: 1, Transferred: 1, WrapUpMS: q.WrapUpMS}, q))
		}},
		"asterisk-exit-by-key-while-ringing.json": {map[int64]string{
			0: "PJSIP/1001 ringing 1, support waiting 1",
			1: "PJSIP/1001 available 2",
		}, "PJSIP/1001", "support", func(a AgentRow, q QueueRow) string {
			return cmp.Or(talks(0)(a, q), differ(QueueRow{Offered: 1}, q))
		}},
		"asterisk-transfer-to-same-queue.json": {map[int64]string{
			1: "PJSIP/1001 talking 2, PJSIP/1002 available 0, support talking 1",
			2: "PJSIP/1001 break 3, PJSIP/1002 ringing 3, support waiting 1", // paused during the call
			3: "PJSIP/1001 break 3, PJSIP/1002 talking 4, support talking 1",
			7: "PJSIP/1001 break 3, PJSIP/1002 wrap_up 7",
		}, "PJSIP/1001", "support", func(a AgentRow, q QueueRow) string {
			return cmp.Or(talks(1)(a, q),
				differ(QueueRow{Offered: 2, Answered: 2, Transferred: 1, WrapUpMS: q.WrapUpMS}, q))
		}},
		"asterisk-pause-set-again.json": {map[int64]string{
			0: "PJSIP/1003 available 0", 6: "PJSIP/1003 break 6", 33: "PJSIP/1003 break 33 away",
		}, "PJSIP/1003", "sales", talks(0)},
		"asterisk-exit-by-key.json": {map[int64]string{
			5: "v-key waiting 1", 25: "", 33: "",
		}, "", "v-key", func(_ AgentRow, q QueueRow) string {
			return differ(QueueRow{Offered: 1}, q)
		}},
		"kazoo-three-misses.json": {map[int64]string{
			1: "dddddddddddddddddddddddddddddddd available 0",
		}, "dddddddddddddddddddddddddddddddd", "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", func(a AgentRow, _ QueueRow) string {
			if a.NoAnswer != 3 {
				return fmt.Sprintf("no_answer %d", a.NoAnswer)
			}
			return ""
		}},
		"freeswitch-one-call-talking.ndjson.gz": {map[int64]string{
			1: "1001@pbx.example.com ringing 1, support@pbx.example.com waiting 1",
			2: "1001@pbx.example.com talking 2, support@pbx.example.com talking 1",
		}, "1001@pbx.example.com", "support@pbx.example.com", func(a AgentRow, q QueueRow) string {
			return differ(QueueRow{Offered: 1, Answered: 1}, q)
		}},
		"freeswitch-three-callers-one-rings.ndjson.gz": {map[int64]string{
			0: "1001@pbx.example.com ringing 0, support@pbx.example.com waiting 3",
		}, "1001@pbx.example.com", "support@pbx.example.com", talks(0)},
		"freeswitch-transfer-to-queue.ndjson.gz": {map[int64]string{
			5: "1001@pbx.example.com available 5, 1003@pbx.example.com ringing 5, sales@pbx.example.com waiting 1",
			8: "1001@pbx.example.com available 5, 1003@pbx.example.com available 8",
		}, "1001@pbx.example.com", "support@pbx.example.com", func(a AgentRow, q QueueRow) string {
			return cmp.Or(talks(2)(a, q), differ(QueueRow{Offered: 1, Answered: 1, Transferred: 1}, q))
		}},
		"freeswitch-transfer-to-extension.ndjson.gz": {map[int64]string{
			5: "1001@pbx.example.com available 6", // the seconds of a state are those of the clock
		}, "1001@pbx.example.com", "support@pbx.example.com", func(a AgentRow, q QueueRow) string {
			return cmp.Or(talks(2)(a, q), differ(QueueRow{Offered: 1, Answered: 1, Transferred: 1}, q))
		}},
		"freeswitch-attended-transfer.ndjson.gz": {map[int64]string{
			1:  "1001@pbx.example.com talking 1, support@pbx.example.com talking 1",
			11: "1001@pbx.example.com available 12",
		}, "1001@pbx.example.com", "support@pbx.example.com", transferredOnce},
		// with the profile's fire-transfer-events
		"freeswitch-attended-transfer-told-twice.ndjson.gz": {map[int64]string{
			1: "1001@pbx.example.com talking 2, support@pbx.example.com talking 1",
			4: "1001@pbx.example.com available 5",
		}, "1001@pbx.example.com", "support@pbx.example.com", transferredOnce},
		"freeswitch-attended-transfer-while-ringing.ndjson.gz": {map[int64]string{
			1: "1001@pbx.example.com talking 1, support@pbx.example.com talking 1",
			4: "1001@pbx.example.com available 5",
		}, "1001@pbx.example.com", "support@pbx.example.com", transferredOnce},
		"freeswitch-caller-gone-as-agent-answers.ndjson.gz": {map[int64]string{
			7:  "1001@pbx.example.com ringing 8, support@pbx.example.com waiting 1",
			8:  "1001@pbx.example.com talking 8, support@pbx.example.com talking 1",
			11: "1001@pbx.example.com available 12",
		}, "1001@pbx.example.com", "support@pbx.example.com", answeredOnce},
		"freeswitch-caller-gone-told-twice.ndjson.gz": {map[int64]string{ // member-queue-end comes too
			1: "1001@pbx.example.com talking 1",
			5: "1001@pbx.example.com available 5",
		}, "1001@pbx.example.com", "support@pbx.example.com", answeredOnce},
	} {
		t.Run(file, func(t *testing.T) {
			for n, story := range orders(readStory(t, file)) {
				floors, figures := foldStory(t, story, state.NewPartition())
				for at, want := range r.floors {
					if got := floors[at]; got != want {
						t.Errorf("order %d, after %d s:\n got %s\nwant %s", n, at, got, want)
					}
				}

				if wrong := r.want(figures.sums(r.agent, r.queue)); wrong != "" {
					t.Errorf("order %d: %s", n, wrong)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

func differ(want, got QueueRow) string {
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Sprintf("the queue has %+v, want %+v", got, want)
	}
	return ""
}
