package stats

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/registry"
)

// The stories in testdata were captured from an Asterisk and a FreeSWITCH that told
// their own counters afterwards: each queue was new. On both, two calls were answered
// after 1 s, one after 5 s, callers hung up after 2 s and 6 s, and for one the queue's
// time was over. Channel variables and events that say nothing are left out.

// foldCapture normalizes and folds the events of a captured story.
func foldCapture(t *testing.T, file string, thresholds Thresholds) *Fold {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	rules := testRules()
	rules.Thresholds = func(string, string, int64) Thresholds { return thresholds }
	fold, partition := NewFold(rules), state.NewPartition()
	var scratch registry.Scratch
	var fields format.Fields
	var last event.ID

	for line := range bytes.Lines(text) {
		f, _, err := registry.Recognise(event.TopicRaw, line, &scratch)
		if err != nil {
			t.Fatal(err)
		}

		e, err := f.ReadEvent(line, &fields)
		if err != nil {
			t.Fatal(err)
		}

		last = event.NextID(last, e.Facts.TimestampMS, 0)
		folded := state.Event{ID: last, Account: account, Timestamp: e.Timestamp, Facts: e.Facts}
		partition.CompleteAndFold(&folded)
		fold.Apply(&folded)
	}

	for range 20 { // what is due by time alone
		last = event.NextID(last, last.Time().Add(time.Minute).UnixMilli(), 0)
		fold.Advance(last)
	}

	return fold
}

// sumOfQueue adds up the rows of a queue.
func (f *Fold) sumOfQueue(queue string) (sum QueueRow) {
	for k, e := range f.table.entries {
		if r, ok := e.(*QueueRow); ok && k.id.Value() == queue {
			sum.Offered += r.Offered
			sum.Answered += r.Answered
			sum.Abandoned += r.Abandoned
			sum.AbandonedShort += r.AbandonedShort
			sum.AnsweredWithin += r.AnsweredWithin
			sum.WaitMS += r.WaitMS
			sum.AbandonWaitMS += r.AbandonWaitMS
			sum.TalkMS += r.TalkMS
		}
	}

	return sum
}

func (f *Fold) sumOfAgent(agent string) (sum AgentRow) {
	for k, e := range f.table.entries {
		if r, ok := e.(*AgentRow); ok && k.id.Value() == agent {
			sum.Offered += r.Offered
			sum.Answered += r.Answered
			sum.NoAnswer += r.NoAnswer
			sum.TalkingMS += r.TalkingMS
		}
	}
	return sum
}

// whole expects a time in milliseconds to be one in whole seconds that was cut or
// rounded once for each of calls calls.
func whole(t *testing.T, what string, ms, seconds, calls int64) {
	t.Helper()
	if off := ms - seconds*1000; off < -1000*calls || off > 1000*calls {
		t.Errorf("%s: %d ms, the platform has %d s", what, ms, seconds)
	}
}

func atoi(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFiguresAreAsterisksOwn(t *testing.T) {
	const level = 3 // servicelevel of the queues
	f := foldCapture(t, "asterisk.events.jsonl", Thresholds{level, level})

	// queue_log: times are whole seconds.
	type logged struct {
		entered, answered, abandoned int64
		timeouts                     int64 // which AMI reports as abandoned first
		holds, talks                 []int64
		abandonWait                  int64
	}
	log := map[string]*logged{}
	text, err := os.ReadFile("testdata/asterisk.queue_log")
	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		q := log[cells[2]]
		if q == nil {
			q = &logged{}
			log[cells[2]] = q
		}

		switch cells[4] {
		case "ENTERQUEUE":
			q.entered++
		case "CONNECT":
			q.answered++
			q.holds = append(q.holds, atoi(t, cells[5]))
		case "COMPLETEAGENT", "COMPLETECALLER":
			q.talks = append(q.talks, atoi(t, cells[6]))
		case "ABANDON":
			q.abandoned++
			q.abandonWait += atoi(t, cells[7])
		case "EXITWITHTIMEOUT":
			q.timeouts++
		}
	}

	sum := func(list []int64) (n int64) {
		for _, one := range list {
			n += one
		}
		return n
	}

	for name, q := range log {
		got := f.sumOfQueue(name)
		expect(t, name+" in queue_log",
			[4]int64{got.Offered, got.Answered, got.Abandoned, got.Offered - got.Answered - got.Abandoned},
			[4]int64{q.entered, q.answered, q.abandoned, q.timeouts})
		whole(t, name+" waits", got.WaitMS, sum(q.holds), q.answered)
		whole(t, name+" talk", got.TalkMS, sum(q.talks), q.answered)
		whole(t, name+" abandoned waits", got.AbandonWaitMS, q.abandonWait, q.abandoned)
	}

	// QueueStatus and QueueSummary.
	moving := func(list []int64) (average int64) { // app_queue's average of whole seconds
		for i, one := range list {
			if i == 0 {
				average = one
			} else {
				average = (3*average + one) / 4
			}
		}

		return average
	}

	percent := func(part, of int64) string {
		if of == 0 {
			return "0.0"
		}
		return strconv.FormatFloat(100*float64(part)/float64(of), 'f', 1, 64)
	}

	status, err := os.ReadFile("testdata/asterisk.status.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	queues := 0
	for line := range bytes.Lines(status) {
		var of map[string]string
		if err := json.Unmarshal(line, &of); err != nil {
			t.Fatal(err)
		}

		name := of["Queue"]
		got := f.sumOfQueue(name)
		switch of["Event"] {
		case "QueueParams":
			queues++
			expect(t, name+" QueueParams", map[string]string{"Completed": of["Completed"], "Abandoned": of["Abandoned"],
				"ServicelevelPerf": of["ServicelevelPerf"], "ServicelevelPerf2": of["ServicelevelPerf2"],
				"Holdtime": of["Holdtime"], "TalkTime": of["TalkTime"]},
				map[string]string{
					"Completed":         strconv.FormatInt(got.Answered, 10),
					"Abandoned":         strconv.FormatInt(got.Offered-got.Answered, 10),
					"ServicelevelPerf":  percent(got.AnsweredWithin, got.Answered),
					"ServicelevelPerf2": percent(got.AnsweredWithin+got.AbandonedShort, got.Offered),
					"Holdtime":          strconv.FormatInt(moving(log[name].holds), 10),
					"TalkTime":          strconv.FormatInt(moving(log[name].talks), 10),
				})
		case "QueueSummary":
			expect(t, name+" QueueSummary", [2]string{of["HoldTime"], of["TalkTime"]},
				[2]string{strconv.FormatInt(moving(log[name].holds), 10),
					strconv.FormatInt(moving(log[name].talks), 10)})
		case "QueueMember":
			expect(t, of["Name"]+" CallsTaken", of["CallsTaken"],
				strconv.FormatInt(f.sumOfAgent(of["Location"]).Answered, 10))
		}
	}

	expect(t, "queues", queues, 3)
}

// table reads what callcenter_config prints.
func table(t *testing.T, file string) (rows []map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}

	r := csv.NewReader(bytes.NewReader(text))
	r.Comma = '|'
	cells, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}

	for _, row := range cells[1:] {
		named := map[string]string{}
		for i, name := range cells[0] {
			named[name] = row[i]
		}
		rows = append(rows, named)
	}

	return rows
}

func TestFiguresAreModCallcentersOwn(t *testing.T) {
	f := foldCapture(t, "freeswitch.events.jsonl", Thresholds{3, 3})
	queues := table(t, "freeswitch.queues")
	expect(t, "queues", len(queues), 3)

	for _, q := range queues {
		got := f.sumOfQueue(q["name"])
		expect(t, q["name"]+" queue list", [2]int64{got.Answered, got.Offered - got.Answered},
			[2]int64{atoi(t, q["calls_answered"]), atoi(t, q["calls_abandoned"])})
	}

	slow := f.sumOfQueue("slow@pbx.example.com")
	expect(t, "abandoned by the caller", [2]int64{slow.Abandoned, slow.AbandonedShort}, [2]int64{2, 1})
	for _, a := range table(t, "freeswitch.agents") {
		got := f.sumOfAgent(a["name"])
		calls := atoi(t, a["calls_answered"])
		expect(t, a["name"]+" calls_answered, no_answer_count", [2]int64{got.Answered, got.NoAnswer},
			[2]int64{calls, atoi(t, a["no_answer_count"])})
		whole(t, a["name"]+" talk_time", got.TalkingMS, atoi(t, a["talk_time"]), calls)
	}
}
