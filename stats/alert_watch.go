package stats

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"unique"

	"trunkline/event"
)

const (
	// maxReviews bounds the queues, agents and feeds whose alerts one event reviews because of
	// the time: what they change has room in one request.
	maxReviews = 256
	never      = event.ID(math.MaxInt64)
	hourMS     = 3_600_000
	second     = event.ID(1_000_000_000)
	millisec   = event.ID(1_000_000)
)

// alertRules are the rules of the alerts of all accounts. They must always give the same for
// the same arguments.
type alertRules interface {
	// alertsAt returns the rules in force for an account at a time, and the time before which and
	// from which others are: all in Unix seconds, until is 0 if no change is known.
	alertsAt(account string, at int64) (rules []AlertRule, since, until int64)
	// alertChanges returns a number that rises when alertsAt may give something else.
	alertChanges() int64
}

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
}

// countedAgent is how an agent counts in the watches of its queues.
type countedAgent struct {
	queues    []string
	available []string
}

// findWatch returns the watch of a queue, agent or feed; a new one if there is none.
func (f *Fold) findWatch(k key) *alertWatch {
	w := f.watches[k]
	if w == nil {
		w = &alertWatch{header: header{key: k, due: never}, alerts: map[string]*alert{}}
		f.watches[k] = w
		f.reviews.add(w)
	}
	return w
}

// watchOf is findWatch for one that changes: it is reviewed after the event.
func (f *Fold) watchOf(k key) *alertWatch {
	w := f.findWatch(k)
	// Not at once: an event may change several entries of one queue, and only its end counts.
	f.touched[w] = struct{}{}
	return w
}

func queueWatchKey(account unique.Handle[string], queue string) key {
	return key{account, unique.Make(queue), 0, kindQueue}
}

// observe updates the watches of an entry that is new, has changed or, gone, was removed.
func (f *Fold) observe(e entry, gone bool) {
	if f.rules.Alerts == nil {
		return
	}

	switch e := e.(type) {
	case *call:
		f.observeCall(e, gone)
	case *QueueRow:
		w := f.watchOf(queueWatchKey(e.key.account, e.key.id.Value()))
		w.newestRow = max(w.newestRow, e.key.start)
	case *agent:
		f.observeAgent(e, gone)
	case *feed:
		w := f.watchOf(e.key)
		w.feed = e
		if gone {
			w.feed = nil
		}
	case *alert:
		f.observeAlert(e, gone)
	}
}

func (f *Fold) observeCall(c *call, gone bool) {
	w := f.watchOf(queueWatchKey(c.key.account, c.Queue))
	at, in := slices.BinarySearchFunc(w.waiting, c, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.EnteredMS, b.EnteredMS), a.key.compare(b.key))
	})
	waits := !gone && c.AnsweredMS == 0 && c.EndedMS == 0

	switch {
	case waits && !in:
		w.waiting = slices.Insert(w.waiting, at, c)
	case !waits && in:
		w.waiting = slices.Delete(w.waiting, at, at+1)
	}
}

func (f *Fold) observeAgent(a *agent, gone bool) {
	w := f.watchOf(a.key)
	next := countedAgent{queues: a.Queues}
	w.agent = a

	if gone {
		w.agent, next.queues = nil, nil
	}
	if !gone && a.State == event.Available {
		next.available = slices.DeleteFunc(slices.Clone(a.Queues),
			func(q string) bool { return slices.Contains(a.Paused, q) })
	}

	count := func(queues []string, by func(w *alertWatch, n int), n int) {
		for _, queue := range queues {
			by(f.watchOf(queueWatchKey(a.key.account, queue)), n)
		}
	}

	if !slices.Equal(a.counted.queues, next.queues) {
		member := func(w *alertWatch, n int) { w.members += n }
		count(a.counted.queues, member, -1)
		count(next.queues, member, 1)
	}

	if !slices.Equal(a.counted.available, next.available) {
		available := func(w *alertWatch, n int) { w.available += n }
		count(a.counted.available, available, -1)
		count(next.available, available, 1)
	}

	a.counted = next
}

// observeAlert links an alert that has not ended to what it is about.
func (f *Fold) observeAlert(a *alert, gone bool) {
	k := key{account: a.key.account, kind: a.When.Metric.kind()}
	k.id = unique.Make(cmp.Or(a.Queue, a.Agent, a.Feed))
	if !gone && a.EndedMS == 0 {
		f.findWatch(k).alerts[a.Name] = a
		return
	}

	w, ok := f.watches[k]
	if ok && w.alerts[a.Name] == a {
		delete(w.alerts, a.Name)
	}
}

// reviewDue reviews what is due by an id, each at the time at which it was due.
func (f *Fold) reviewDue(id event.ID) {
	if f.rules.Alerts == nil {
		return
	}

	changes := f.rules.Alerts.alertChanges()
	if changes != f.alertChanges {
		f.alertChanges = changes
		f.scheduleReviews()
	}

	for n := 0; n < maxReviews && len(f.reviews) > 0 && f.reviews[0].commonHeader().due <= id; n++ {
		w := f.reviews[0].(*alertWatch)
		f.review(w, w.due)
	}
}

// reviewTouched reviews what the last event has changed.
func (f *Fold) reviewTouched() {
	if len(f.touched) == 0 {
		return
	}
	touched := slices.SortedFunc(maps.Keys(f.touched), func(a, b *alertWatch) int { return a.key.compare(b.key) })
	clear(f.touched)
	for _, w := range touched {
		f.review(w, f.lastFolded)
	}
	clear(f.touched) // reviews change alerts alone
}

// scheduleReviews finds anew when each watch is due, from the entries and the rules.
func (f *Fold) scheduleReviews() {
	clear(f.touched)
	for _, w := range f.watches {
		rules, since, until := f.rulesFor(w, f.lastFolded)
		w.due = min(until, f.reviewTime(w, rules, since, f.lastFolded))
		f.reviews.fix(w)
	}
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

// rulesFor returns the rules for what is watched that are in force at a time. since and until are
// the nearest changes of the rules.
func (f *Fold) rulesFor(w *alertWatch, at event.ID) (rules []AlertRule, since, until event.ID) {
	all, from, to := f.rules.Alerts.alertsAt(w.key.account.Value(), int64(at/second))
	since, until = event.ID(from)*second, never
	if to != 0 {
		until = event.ID(to) * second
	}
	// A queue without anything to watch has no rules: an alert of it ends, and its watch goes.
	if !w.isWatched(f.hourStart(at)) {
		return nil, since, until
	}

	for i := range all {
		if all[i].appliesTo(w) {
			rules = append(rules, all[i])
		}
	}

	return rules, since, until
}

// hourStart returns the start of the first of the intervals that make the last hour: the current
// one is the last of them.
func (f *Fold) hourStart(at event.ID) int64 {
	return f.intervalStart(at.Milli() - hourMS + f.intervalSeconds()*1000)
}

// measurement is the outcome of a rule at a time.
type measurement struct {
	holds bool
	value float64
	since event.ID // of what holds or does not by the time alone: from when on
	next  event.ID // when it may be another one without an event
}

// measure finds whether the condition of a rule holds.
func (f *Fold) measure(w *alertWatch, when *AlertWhen, at event.ID) measurement {
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
		return f.measureHour(w, when, at)
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
func (f *Fold) measureHour(w *alertWatch, when *AlertWhen, at event.ID) measurement {
	current := f.intervalStart(at.Milli())
	m := measurement{since: event.ID(current) * second, next: event.ID(current+f.intervalSeconds()) * second}
	// Nothing of the hour is left: time changes nothing more.
	if w.newestRow < f.hourStart(at) {
		m.next = never
	}

	var sum QueueRow
	for start := f.hourStart(at); start <= current; start += f.intervalSeconds() {
		r, ok := f.entries[key{w.key.account, w.key.id, start, kindQueue}].(*QueueRow)
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
func (f *Fold) reviewTime(w *alertWatch, rules []AlertRule, since, at event.ID) event.ID {
	next := never
	named := 0
	for i := range rules {
		rule := &rules[i]
		m, a := f.measure(w, &rule.When, at), w.alerts[rule.Name]
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

// review begins and ends the alerts of a watch, in the order of their rules.
func (f *Fold) review(w *alertWatch, at event.ID) {
	if at == 1 { // of what was there before there were rules
		at = f.lastFolded
	}

	rules, since, until := f.rulesFor(w, at)
	for _, name := range slices.Sorted(maps.Keys(w.alerts)) {
		if !slices.ContainsFunc(rules,
			func(r AlertRule) bool { return r.Name == name && r.When.Metric == w.alerts[name].When.Metric }) {
			f.endAlert(w, w.alerts[name], w.alerts[name].Value, at)
		}
	}

	for i := range rules {
		rule := &rules[i]
		m, a := f.measure(w, &rule.When, at), w.alerts[rule.Name]
		switch {
		case m.holds && a == nil:
			a = f.addAlert(w, rule, at)
		case !m.holds && a != nil:
			f.endAlert(w, a, m.value, at)
			continue
		case !m.holds:
			continue
		}

		// The rule as it is when the alert begins, also where it has changed while the condition held.
		if a.StartedMS == 0 && at >= a.Since+event.ID(rule.When.ForSeconds)*second {
			a.When, a.StartedMS, a.Value = rule.When, at.Milli(), m.value
			f.recordChange(a)
			f.announce(a, event.NameAlertStarted, a.StartedMS, 0)
		}
	}

	w.due = min(until, f.reviewTime(w, rules, since, at))
	if len(w.alerts) == 0 && !w.isWatched(f.hourStart(at)) {
		delete(f.watches, w.key)
		f.reviews.remove(w)
		return
	}

	f.reviews.fix(w)
}

func (f *Fold) addAlert(w *alertWatch, rule *AlertRule, at event.ID) *alert {
	id := newAlertID(w, rule, at, f.lastFolded.Partition())
	a := &alert{header: header{key: newKey(kindAlert, w.key.account.Value(), id, 0)}, Name: rule.Name, When: rule.When,
		Since: at}

	switch w.key.kind {
	case kindQueue:
		a.Queue = w.key.id.Value()
	case kindOpenAgent:
		a.Agent = w.key.id.Value()
	case kindFeed:
		a.Feed = w.key.id.Value()
	}

	f.add(a)
	return a
}

// endAlert ends an alert. One that has not begun is forgotten.
func (f *Fold) endAlert(w *alertWatch, a *alert, value float64, at event.ID) {
	if a.StartedMS == 0 {
		f.remove(a)
		return
	}
	a.EndedMS, a.Value = at.Milli(), value
	f.recordChange(a)
	f.announce(a, event.NameAlertEnded, a.EndedMS, 1)
}

// alertDue returns the account of the first alert that the passing of time may change by a
// time, among accounts that exist; "": none.
func (f *Fold) alertDue(by event.ID, inDirectory func(account string) bool) string {
	for _, e := range f.reviews {
		h := e.commonHeader()
		if h.due <= by && inDirectory(h.key.account.Value()) {
			return h.key.account.Value()
		}
	}
	return ""
}

// nextAlertDue returns when the passing of time may change an alert.
func (f *Fold) nextAlertDue() event.ID {
	if len(f.reviews) == 0 {
		return never
	}
	return f.reviews[0].commonHeader().due
}
