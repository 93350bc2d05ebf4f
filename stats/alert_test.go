package stats

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
)

func joined(agent, queue string) event.Facts {
	return event.Facts{Name: event.NameAgentQueueJoin, AgentID: agent, QueueID: queue}
}

// announced are the messages of alerts as the normalizer makes them: the first of each identity.
type announced map[string]string

func (m announced) take(t *testing.T, f *Fold) {
	t.Helper()
	for _, a := range f.TakeAlerts() {
		id := a.Identity.String()
		if before, ok := m[id]; ok && before != string(a.Data) {
			t.Errorf("%s:\nfirst %s\n then %s", id, before, a.Data)
		}
		m[id] = string(a.Data)
	}
}

// occurrence is one alert as the tests compare it.
type occurrence struct {
	Name, Subject string
	Started, At   int64 // Unix milliseconds; At of the message
	Ended         bool
}

// occurrences parses messages. No alert begins or ends twice.
func (m announced) occurrences(t *testing.T) map[occurrence]bool {
	t.Helper()
	all, ids := map[occurrence]bool{}, map[string]bool{}
	for _, text := range m {
		var v struct {
			Event     event.Name
			Timestamp float64
			AlertView
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if ids[v.ID+string(v.Event)] {
			t.Errorf("%s comes twice for %s", v.Event, v.ID)
		}

		ids[v.ID+string(v.Event)] = true
		started, err := v.StartedAt.Float64()
		if err != nil {
			t.Fatal(err)
		}

		all[occurrence{v.Name, v.QueueID + v.AgentID +
			v.Feed, int64(started*1000 + 0.5), int64(v.Timestamp*1000 + 0.5), v.Event == event.NameAlertEnded}] = true
	}

	return all
}

func (s *script) alerts(t *testing.T, rules ...AlertRule) map[occurrence]bool {
	t.Helper()
	r := testRules()
	r.Alerts = fixedAlerts(rules)
	f, m := NewFold(r), announced{}
	for i := range s.events {
		f.Apply(&s.events[i])
		m.take(t, f)
	}
	return m.occurrences(t)
}

func clockMS(clock string) int64 { return clockTime(clock).UnixMilli() }

func expectAlerts(t *testing.T, got map[occurrence]bool, want ...occurrence) {
	t.Helper()
	for _, w := range want {
		if !got[w] {
			t.Errorf("missing: %+v", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d messages, want %d: %v", len(got), len(want), slices.Collect(maps.Keys(got)))
	}
}

func TestAnAlertBeginsByTheTimeAloneAndEndsWithAnEvent(t *testing.T) {
	s := new(script).
		at("09:00:00", entered("sales", "c1")).
		at("09:10:00", tick()).
		at("09:11:00", answered("sales", "c1", "a1"))
	rule := AlertRule{Name: "long", When: AlertWhen{Metric: MetricLongestWait, Above: limit(60)}}
	began := clockMS("09:01:00") + 1 // more than 60 s
	expectAlerts(t, s.alerts(t, rule), occurrence{"long", "sales", began, began, false},
		occurrence{"long", "sales", began, clockMS("09:11:00"), true})
}

func TestAConditionThatDoesNotLastIsNoAlert(t *testing.T) {
	s := new(script).
		at("09:00:00", entered("sales", "c1")).at("09:00:09", answered("sales", "c1", "a1")).
		at("09:01:00", entered("sales", "c2")).at("09:01:10", answered("sales", "c2", "a1"))
	rule := AlertRule{Name: "any", When: AlertWhen{Metric: MetricWaiting, Above: limit(0), ForSeconds: 10}}
	expectAlerts(t, s.alerts(t, rule), occurrence{"any", "sales", clockMS("09:01:10"), clockMS("09:01:10"), false},
		occurrence{"any", "sales", clockMS("09:01:10"), clockMS("09:01:10"), true})
}

func TestAlertsOfQueuesCountTheAgentsInThem(t *testing.T) {
	nobody := AlertRule{Name: "nobody",
		When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(1), WhileWaiting: true}}
	paused := event.Facts{Name: event.NameAgentState, AgentID: "a2", QueueID: "sales", State: event.Available,
		Agent: &event.AgentReport{Device: event.DeviceIdle, Paused: true}}
	s := new(script).
		at("09:00:00", joined("a1", "sales")).at("09:00:00", login("a1")).
		at("09:00:01", joined("a2", "sales")).at("09:00:01", login("a2")).at("09:00:02", paused).
		at("09:01:00", entered("sales", "c1")).
		at("09:02:00", onBreak("a1", "")). // a2 is paused in this queue: nobody is left
		at("09:03:00", login("other")).    // of no queue
		at("09:04:00", offBreak("a1")).    // ends it
		at("09:05:00", event.Facts{Name: event.NameAgentQueueLeave, AgentID: "a1", QueueID: "sales"}).
		at("09:06:00", abandoned("sales", "c1"))
	expectAlerts(t, s.alerts(t, nobody),
		occurrence{"nobody", "sales", clockMS("09:02:00"), clockMS("09:02:00"), false},
		occurrence{"nobody", "sales", clockMS("09:02:00"), clockMS("09:04:00"), true},
		occurrence{"nobody", "sales", clockMS("09:05:00"), clockMS("09:05:00"), false},
		occurrence{"nobody", "sales", clockMS("09:05:00"), clockMS("09:06:00"), true})
}

// An agent's queues are known after a night off.
func TestALoggedOutAgentsQueuesAreKept(t *testing.T) {
	nobody := AlertRule{Name: "nobody",
		When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(1), WhileWaiting: true}}
	s := new(script).at("09:00:00", joined("a1", "sales")).at("09:00:00", login("a1")).at("17:00:00", logout("a1")).
		at("3+08:00:00", login("a1")).at("3+08:01:00", entered("sales", "c1")).at("3+08:02:00",
		answered("sales", "c1", "a1"))
	expectAlerts(t, s.alerts(t, nobody))
}

func TestAFeedThatIsDownIsAnAlert(t *testing.T) {
	rule := DefaultAlerts()[3]
	down := event.Facts{Name: event.NameFeedDisconnected, Reason: "pbx"}
	up := event.Facts{Name: event.NameFeedConnected, Reason: "pbx"}
	s := new(script).at("09:00:00", up).at("09:01:00", down).at("09:01:10", up).at("09:02:00", down).at("09:03:00",
		down).at("09:04:00", up).
		at("10:00:00", down).at("2+10:00:00", tick()).at("2+10:00:01", tick())
	began := clockMS("09:02:30")
	expectAlerts(t, s.alerts(t, rule), occurrence{rule.Name, "pbx", began, began, false},
		occurrence{rule.Name, "pbx", began, clockMS("09:04:00"), true},
		occurrence{rule.Name, "pbx", clockMS("10:00:30"), clockMS("10:00:30"), false},
		// It was taken out of the settings.
		occurrence{rule.Name, "pbx", clockMS("10:00:30"), clockMS("2+10:00:00"), true})
}

// changingAlerts are rules that change at times.
type changingAlerts struct {
	from  []int64 // Unix seconds
	rules [][]AlertRule
}

func (c changingAlerts) alertsAt(_ string, at int64) (rules []AlertRule, since, until int64) {
	for i, from := range c.from {
		if from > at {
			return rules, since, from
		}
		rules, since = c.rules[i], from
	}
	return rules, since, 0
}

func (c changingAlerts) alertChanges() int64 { return 0 }

func TestRulesChangeAtTheirTime(t *testing.T) {
	rule := func(above float64) []AlertRule {
		return []AlertRule{{Name: "many", When: AlertWhen{Metric: MetricWaiting, Above: limit(above)}}}
	}
	r := testRules()
	r.Alerts = changingAlerts{
		from:  []int64{clockMS("09:05:00") / 1000, clockMS("09:10:00") / 1000, clockMS("09:15:00") / 1000},
		rules: [][]AlertRule{rule(0), rule(5), nil},
	}
	f, m := NewFold(r), announced{}
	s := new(script).at("09:00:00", entered("sales", "c1")).at("09:11:00", tick()).at("09:12:00",
		entered("sales", "c2"))

	for range 4 {
		s.at("09:12:00", entered("sales", fmt.Sprint("d", len(s.events))))
	}

	s.at("09:20:00", tick())
	for i := range s.events {
		f.Apply(&s.events[i])
		m.take(t, f)
	}

	last := s.events[len(s.events)-2].ID.Milli()
	expectAlerts(t, m.occurrences(t),
		occurrence{"many", "sales", clockMS("09:05:00"), clockMS("09:05:00"), false},
		occurrence{"many", "sales", clockMS("09:05:00"), clockMS("09:10:00"), true},
		occurrence{"many", "sales", last, last, false}, occurrence{"many", "sales", last, clockMS("09:15:00"), true})
}

// modelRules are those of the comparison with the model.
func modelRules() []AlertRule {
	return []AlertRule{
		{Name: "many", When: AlertWhen{Metric: MetricWaiting, Above: limit(1), ForSeconds: 10}},
		{Name: "long", When: AlertWhen{Metric: MetricLongestWait, Above: limit(90)}},
		{Name: "long in b", When: AlertWhen{Metric: MetricLongestWait, Above: limit(40), ForSeconds: 15},
			Queues: []string{"b"}},
		{Name: "level", When: AlertWhen{Metric: MetricServiceLevel, Below: limit(0.3), ForSeconds: 30, MinCalls: 3}},
		{Name: "lost", When: AlertWhen{Metric: MetricAbandoned, Above: limit(5)}},
		{Name: "nobody",
			When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(1), ForSeconds: 20, WhileWaiting: true}},
		{Name: "few", When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(2)}},
		{Name: "break", When: AlertWhen{Metric: MetricAgentState, Above: limit(300), State: event.Break}},
		{Name: "break in a",
			When:   AlertWhen{Metric: MetricAgentState, Above: limit(100), ForSeconds: 5, State: event.Break},
			Queues: []string{"a"}},
	}
}

// shift makes events of two hours with calls and agents, of which nothing is late.
func shift(seed uint64) []state.Event {
	r := rand.New(rand.NewPCG(seed, 11))
	type planned struct {
		at    int64
		facts event.Facts
	}
	var plan []planned
	add := func(at int64, facts event.Facts) { plan = append(plan, planned{at, facts}) }
	start := day.UnixMilli()

	for i := range 8 {
		agent, queue := fmt.Sprint("a", i), []string{"a", "b"}[i%2]
		add(start+int64(i), joined(agent, queue))
		for at := start + r.Int64N(600_000); at < start+2*hourMS; at += 1000 + r.Int64N(900_000) {
			add(at, []event.Facts{login(agent), onBreak(agent, ""), onBreak(agent, ""), logout(agent),
				offBreak(agent)}[r.IntN(5)])
		}
	}

	for i := range 80 {
		call, queue := fmt.Sprint("c", i), []string{"a", "b"}[r.IntN(2)]
		at := start + r.Int64N(2*hourMS)
		add(at, entered(queue, call))
		at += 500 + r.Int64N(150_000)

		if r.IntN(3) == 0 {
			add(at, abandoned(queue, call))
			continue
		}

		add(at, queueCall(event.NameQueueCallAnswered, queue, call, ""))
		add(at+r.Int64N(200_000), ended(queue, call, ""))
	}

	slices.SortStableFunc(plan, func(a, b planned) int { return int(a.at - b.at) })

	var events []state.Event
	last := event.ID(0)
	for _, p := range plan {
		last = event.NextID(last, p.at, 3)
		p.facts.TimestampMS = p.at
		events = append(events, state.Event{ID: last, Account: account, Timestamp: p.at / 1000, Facts: p.facts})
	}

	return events
}

// model computes the alerts of a shift otherwise than the fold: from scratch for every moment at
// which anything may change.
type model struct {
	events []state.Event
	rules  []AlertRule
}

// holds computes a condition at a time from all events up to then.
func (m model) holds(rule *AlertRule, subject string, at event.ID) bool {
	type visit struct {
		entered   int64
		waits     bool
		abandoned bool
		wait      int64
		answered  bool
	}
	visits := map[string]*visit{}
	states := map[string]event.State{}
	since := map[string]int64{}
	queues := map[string]string{}

	for _, e := range m.events {
		if e.ID > at {
			break
		}

		f := &e.Facts
		switch f.Name {
		case event.NameAgentQueueJoin:
			queues[f.AgentID] = f.QueueID
		case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd:
			if states[f.AgentID] != f.State {
				states[f.AgentID], since[f.AgentID] = f.State, e.ID.Milli()
			}
		}

		if f.CallID == "" || f.QueueID != subject {
			continue
		}

		v := visits[f.CallID]
		switch f.Name {
		case event.NameQueueCallEntered:
			visits[f.CallID] = &visit{entered: f.TimestampMS, waits: true}
		case event.NameQueueCallAnswered:
			v.waits, v.answered, v.wait = false, true, f.TimestampMS-v.entered
		case event.NameQueueCallAbandoned:
			v.waits, v.abandoned, v.wait = false, true, f.TimestampMS-v.entered
		}
	}

	quarter := at.Milli() / 900_000 * 900_000
	waiting, offered, within, short, lost, oldest := 0, 0, 0, 0, 0, int64(1<<62)
	for _, v := range visits {
		if v.waits {
			waiting++
			oldest = min(oldest, v.entered)
		}
		if v.entered < quarter-2_700_000 {
			continue
		}

		offered++
		if v.answered && v.wait <= 20_000 {
			within++
		}

		if v.abandoned {
			lost++
			if v.wait <= 5000 {
				short++
			}
		}
	}

	available := 0
	for agent, queue := range queues {
		if queue == subject && states[agent] == event.Available {
			available++
		}
	}

	nanos := int64(at)
	switch rule.Name {
	case "many":
		return waiting > 1
	case "long":
		return waiting > 0 && nanos >= (oldest+90_001)*1e6
	case "long in b":
		return subject == "b" && waiting > 0 && nanos >= (oldest+40_001)*1e6
	case "level":
		return offered-short >= 3 && float64(within)/float64(offered-short) < 0.3
	case "lost":
		return lost > 5
	case "nobody":
		return waiting > 0 && available < 1
	case "few":
		exists := len(queues) > 0 && slices.Contains(slices.Collect(maps.Values(queues)), subject)
		return exists && available < 2
	case "break":
		return states[subject] == event.Break && nanos >= (since[subject]+300_001)*1e6
	case "break in a":
		return queues[subject] == "a" && states[subject] == event.Break && nanos >= (since[subject]+100_001)*1e6
	}

	panic(rule.Name)
}

func (m model) occurrences() map[occurrence]bool {
	var moments []event.ID
	end := m.events[len(m.events)-1].ID
	for _, e := range m.events {
		moments = append(moments, e.ID)
		for _, later := range []int64{90_001, 40_001, 300_001, 100_001} {
			moments = append(moments, event.ID((e.Facts.TimestampMS+later)*1e6))
		}
	}

	for at := day.UnixMilli(); at < end.Milli(); at += 900_000 {
		moments = append(moments, event.ID(at*1e6))
	}

	slices.Sort(moments)
	moments = slices.Compact(slices.DeleteFunc(moments, func(at event.ID) bool { return at > end }))

	all := map[occurrence]bool{}
	for i := range m.rules {
		rule := &m.rules[i]
		subjects := []string{"a", "b"}
		if rule.When.Metric == MetricAgentState {
			subjects = []string{"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"}
		}

		for _, subject := range subjects {
			held, since := false, event.ID(0)
			began := func(until event.ID) (int64, bool) {
				at := since + event.ID(rule.When.ForSeconds)*1e9
				return at.Milli(), held && at <= until
			}

			for _, at := range moments {
				holds := m.holds(rule, subject, at)
				started, ok := began(at)
				if held && !holds {
					if ok {
						all[occurrence{rule.Name, subject, started, started, false}] = true
						all[occurrence{rule.Name, subject, started, at.Milli(), true}] = true
					}
					held = false
				}

				if !held && holds {
					held, since = true, at
				}
			}

			if started, ok := began(end); ok {
				all[occurrence{rule.Name, subject, started, started, false}] = true
			}
		}
	}

	return all
}

// A processor is killed at random events: what it had folded since its last flush is folded again
// by the next one, from what was flushed, and messages written before the kill come again. The
// alerts are those of the model, each begun and ended once.
func TestAlertsBeginAndEndOnceThroughKills(t *testing.T) {
	for seed := range uint64(2) {
		events := shift(seed)
		want := model{events, modelRules()}.occurrences()
		rules := testRules()
		rules.Alerts = fixedAlerts(modelRules())
		r := rand.New(rand.NewPCG(seed, 5))

		stored, at, messages := topic{}, 0, announced{}
		f := NewFold(rules)
		kills := 0

		for i := 0; i < len(events); i++ {
			f.Apply(&events[i])
			if r.IntN(8) > 0 {
				continue
			}

			messages.take(t, f) // written before the position
			if r.IntN(2) == 0 {
				stored.applyFlush(f)
				at = i + 1
			}

			if r.IntN(3) == 0 { // killed
				kills++
				f = NewFold(rules)
				values := map[string][]byte{}

				for key, value := range stored {
					values[key] = []byte(value)
				}

				last := event.ID(0)
				if at > 0 {
					last = events[at-1].ID
				}
				if foreign := f.Load(values, last); foreign != nil {
					t.Fatal(foreign)
				}

				i = at - 1
			}
		}

		messages.take(t, f)

		got := messages.occurrences(t)
		for o := range want {
			if !got[o] {
				t.Errorf("seed %d: missing %+v", seed, o)
			}
		}

		for o := range got {
			if !want[o] {
				t.Errorf("seed %d: not in the model: %+v", seed, o)
			}
		}

		if len(want) < 40 || kills < 10 {
			t.Errorf("seed %d: only %d messages and %d kills", seed, len(want), kills)
		}

		byRule := map[string]int{}
		for o := range want {
			byRule[o.Name]++
		}

		t.Logf("seed %d: %d kills, %v", seed, kills, byRule)
	}
}
