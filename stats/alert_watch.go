package stats

import (
	"math"
	"slices"

	"trunkline/event"
)

const (
	never    = event.ID(math.MaxInt64)
	hourMS   = 3_600_000
	second   = event.ID(1_000_000_000)
	millisec = event.ID(1_000_000)
)

// alertWatch is what alerts look at of one queue, agent or feed: made from the entries, not stored.
// It is an entry so that timers can hold it; its due is when its alerts may change next without
// another event.
type alertWatch struct {
	header

	// Of a queue.
	waiting   []*call // its waiting callers, by the time at which they entered
	members   int
	available int
	newestRow int64 // start of its newest row

	agent  *agent
	feed   *feed
	alerts map[string]*alert // by the name of the rule; those that have not ended

	counted countedAgent // of an agent
}

// countedAgent is how an agent counts in the watches of its queues.
type countedAgent struct {
	queues    []string
	available []string
}

// isWatched reports whether there is anything to watch.
func (w *alertWatch) isWatched(hourStart int64) bool {
	return w.agent != nil || w.feed != nil || len(w.waiting) > 0 || w.members > 0 || w.newestRow >= hourStart
}

// appliesTo reports whether a rule is for what is watched.
func (r *AlertRule) appliesTo(w *alertWatch) bool {
	if r.When.Metric.kind() != w.key.kind {
		return false
	}

	id := w.key.id.Value()
	if w.key.kind != kindOpenAgent {
		return len(r.Queues) == 0 || slices.Contains(r.Queues, id)
	}

	inQueue := func(queue string) bool { return slices.Contains(w.agent.Queues, queue) }
	return w.agent != nil && (len(r.Agents) == 0 || slices.Contains(r.Agents, id)) &&
		(len(r.Queues) == 0 || slices.ContainsFunc(r.Queues, inQueue))
}

// measurement is the outcome of a rule at a time.
type measurement struct {
	holds bool
	value float64
	since event.ID // of what holds or does not by the time alone: from when on
	next  event.ID // when it may be another one without an event
}

// measure finds whether the condition of a rule holds.
func (w *alertWatch) measure(when *AlertWhen, at event.ID, table *entryTable) measurement {
	value := func(n int) measurement {
		return measurement{holds: when.holds(float64(n)), value: float64(n), next: never}
	}

	switch when.Metric {
	case MetricWaiting:
		return value(len(w.waiting))
	case MetricAgentsAvailable:
		if when.WhileWaiting && len(w.waiting) == 0 {
			return measurement{value: float64(w.available), next: never}
		}
		return value(w.available)
	case MetricFeedConnected:
		if w.feed.Connected {
			return value(1)
		}
		return value(0)
	case MetricLongestWait:
		if len(w.waiting) > 0 {
			return measureAge(w.waiting[0].EnteredMS, when, at)
		}
	case MetricAgentState:
		if w.agent.State == when.State {
			return measureAge(w.agent.SinceMS, when, at)
		}
	case MetricServiceLevel, MetricAbandoned:
		return w.measureHour(when, at, table)
	}

	return measurement{next: never}
}

// measureAge compares the time since sinceMS with a limit that it exceeds later.
func measureAge(sinceMS int64, when *AlertWhen, at event.ID) measurement {
	exceeds := event.ID(sinceMS+int64(*when.Above*1000)+1) * millisec
	m := measurement{value: max(0, float64(at.Milli()-sinceMS)/1000), next: exceeds}
	if at >= exceeds {
		m.holds, m.since, m.next = true, exceeds, never
	}
	return m
}

// measureHour adds up the rows of the intervals of the last hour.
func (w *alertWatch) measureHour(when *AlertWhen, at event.ID, table *entryTable) measurement {
	current := table.intervals.startOf(at.Milli())
	m := measurement{since: event.ID(current) * second, next: event.ID(current+table.intervals.seconds()) * second}
	// Nothing of the hour is left: time changes nothing more.
	if w.newestRow < table.intervals.hourStart(at) {
		m.next = never
	}

	var sum QueueRow
	for start := table.intervals.hourStart(at); start <= current; start += table.intervals.seconds() {
		r, ok := table.entries[key{w.key.account, w.key.id, start, kindQueue}].(*QueueRow)
		if ok {
			sum.Offered += r.Offered
			sum.Abandoned += r.Abandoned
			sum.AbandonedShort += r.AbandonedShort
			sum.AnsweredWithin += r.AnsweredWithin
		}
	}

	if when.Metric == MetricAbandoned {
		m.value = float64(sum.Abandoned)
		m.holds = when.holds(m.value)
		return m
	}

	level, ok := sum.ServiceLevel()
	m.value = level
	m.holds = ok && sum.Offered-sum.AbandonedShort >= when.MinCalls && when.holds(level)

	return m
}

// reviewTime returns when the alerts of a watch have to be reviewed next, if no event changes
// what is watched: at is the time of the last review. It finds the same time as the process that
// reviewed last, so that a takeover changes nothing.
func (w *alertWatch) reviewTime(rules []AlertRule, since, at event.ID, table *entryTable) event.ID {
	next := never
	named := 0
	for i := range rules {
		rule := &rules[i]
		m, a := w.measure(&rule.When, at, table), w.alerts[rule.Name]
		if a != nil {
			named++
		}

		next = min(next, m.next)
		if m.holds != (a != nil) { // it was due before
			next = min(next, max(m.since, since, 1))
		}
		if a != nil && a.StartedMS == 0 {
			next = min(next, a.Since+event.ID(rule.When.ForSeconds)*second)
		}
	}

	if named < len(w.alerts) { // there is no such rule any more
		next = min(next, max(since, 1))
	}

	return next
}
