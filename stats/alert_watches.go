package stats

import (
	"cmp"
	"maps"
	"slices"
	"unique"

	"trunkline/event"
)

// maxReviews bounds the queues, agents and feeds whose alerts one event reviews because of
// the time: what they change has room in one request.
const maxReviews = 256

// alertRules are the rules of the alerts of all accounts. They must always give the same for
// the same arguments.
type alertRules interface {
	// alertsAt returns the rules in force for an account at a time, and the time before which and
	// from which others are: all in Unix seconds, until is 0 if no change is known.
	alertsAt(account string, at int64) (rules []AlertRule, since, until int64)
	// alertChanges returns a number that rises when alertsAt may give something else.
	alertChanges() int64
}

// alertWatches finds the alerts of a table's queues, agents and feeds.
type alertWatches struct {
	table   *entryTable
	rules   alertRules // nil: no alerts
	changes int64      // of the rules, as of the last schedule

	watches  map[key]*alertWatch
	reviews  timers                   // of watches
	touched  map[*alertWatch]struct{} // by the last event
	messages []AlertMessage           // created since Fold.TakeAlerts
}

func newAlertWatches(table *entryTable, rules alertRules) *alertWatches {
	return &alertWatches{table: table, rules: rules, watches: map[key]*alertWatch{},
		touched: map[*alertWatch]struct{}{}}
}

// begin makes the watches anew from the entries of the table.
func (s *alertWatches) begin() {
	if s.rules == nil {
		return
	}

	s.table.dropChanges()
	clear(s.watches)
	s.reviews = nil
	for _, e := range s.table.entries {
		s.observe(e, false)
	}

	s.changes = s.rules.alertChanges()
	s.schedule()
}

// findWatch returns the watch of a queue, agent or feed; a new one if there is none.
func (s *alertWatches) findWatch(k key) *alertWatch {
	w := s.watches[k]
	if w == nil {
		w = &alertWatch{header: header{key: k, due: never}, alerts: map[string]*alert{}}
		s.watches[k] = w
		s.reviews.add(w)
	}
	return w
}

// touch is findWatch for one that changes: it is reviewed after the event.
func (s *alertWatches) touch(k key) *alertWatch {
	w := s.findWatch(k)
	// Not at once: an event may change several entries of one queue, and only its end counts.
	s.touched[w] = struct{}{}
	return w
}

func queueWatchKey(account unique.Handle[string], queue string) key {
	return key{account, unique.Make(queue), 0, kindQueue}
}

// observe updates the watches of an entry that is new, has changed or, gone, was removed.
func (s *alertWatches) observe(e entry, gone bool) {
	switch e := e.(type) {
	case *call:
		s.observeCall(e, gone)
	case *QueueRow:
		w := s.touch(key{e.key.account, e.key.id, 0, kindQueue})
		w.newestRow = max(w.newestRow, e.key.start)
	case *agent:
		s.observeAgent(e, gone)
	case *feed:
		w := s.touch(e.key)
		w.feed = e
		if gone {
			w.feed = nil
		}
	case *alert:
		s.observeAlert(e, gone)
	}
}

func (s *alertWatches) observeCall(c *call, gone bool) {
	w := s.touch(queueWatchKey(c.key.account, c.Queue))
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

func (s *alertWatches) observeAgent(a *agent, gone bool) {
	w := s.touch(a.key)
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
			by(s.touch(queueWatchKey(a.key.account, queue)), n)
		}
	}

	if !slices.Equal(w.counted.queues, next.queues) {
		member := func(w *alertWatch, n int) { w.members += n }
		count(w.counted.queues, member, -1)
		count(next.queues, member, 1)
	}

	if !slices.Equal(w.counted.available, next.available) {
		available := func(w *alertWatch, n int) { w.available += n }
		count(w.counted.available, available, -1)
		count(next.available, available, 1)
	}

	w.counted = next
}

// observeAlert links an alert that has not ended to what it is about.
func (s *alertWatches) observeAlert(a *alert, gone bool) {
	k := key{account: a.key.account, kind: a.When.Metric.kind()}
	k.id = unique.Make(cmp.Or(a.Queue, a.Agent, a.Feed))
	if !gone && a.EndedMS == 0 {
		s.findWatch(k).alerts[a.Name] = a
		return
	}

	w, ok := s.watches[k]
	if ok && w.alerts[a.Name] == a {
		delete(w.alerts, a.Name)
	}
}

// reviewDue reviews what is due by the last event, each at the time at which it was due.
func (s *alertWatches) reviewDue() {
	if s.rules == nil {
		return
	}

	changes := s.rules.alertChanges()
	if changes != s.changes {
		s.changes = changes
		s.schedule()
	}

	for n := 0; n < maxReviews && s.reviews.nextDue() <= s.table.last; n++ {
		w := s.reviews[0].(*alertWatch)
		s.review(w, w.due)
	}

	s.table.dropChanges() // reviews change alerts alone, as linked already
}

// reviewChanged reviews what the last event has changed.
func (s *alertWatches) reviewChanged() {
	if len(s.table.changes) == 0 {
		return
	}

	for _, c := range s.table.changes {
		s.observe(c.entry, c.gone)
	}

	touched := slices.SortedFunc(maps.Keys(s.touched), func(a, b *alertWatch) int { return a.key.compare(b.key) })
	clear(s.touched)
	for _, w := range touched {
		s.review(w, s.table.last)
	}

	s.table.dropChanges() // reviews change alerts alone, as linked already
}

// schedule finds anew when each watch is due, from the entries and the rules.
func (s *alertWatches) schedule() {
	clear(s.touched)
	for _, w := range s.watches {
		rules, since, until := s.rulesFor(w, s.table.last)
		w.due = min(until, w.reviewTime(rules, since, s.table.last, s.table))
		s.reviews.fix(w)
	}
}

// rulesFor returns the rules for what is watched that are in force at a time. since and until are
// the nearest changes of the rules.
func (s *alertWatches) rulesFor(w *alertWatch, at event.ID) (rules []AlertRule, since, until event.ID) {
	all, from, to := s.rules.alertsAt(w.key.account.Value(), int64(at/second))
	since, until = event.ID(from)*second, never
	if to != 0 {
		until = event.ID(to) * second
	}
	// A queue without anything to watch has no rules: an alert of it ends, and its watch goes.
	if !w.isWatched(s.table.intervals.hourStart(at)) {
		return nil, since, until
	}

	for i := range all {
		if all[i].appliesTo(w) {
			rules = append(rules, all[i])
		}
	}

	return rules, since, until
}

// review begins and ends the alerts of a watch, in the order of their rules.
func (s *alertWatches) review(w *alertWatch, at event.ID) {
	if at == 1 { // of what was there before there were rules
		at = s.table.last
	}

	rules, since, until := s.rulesFor(w, at)
	for _, name := range slices.Sorted(maps.Keys(w.alerts)) {
		if !slices.ContainsFunc(rules,
			func(r AlertRule) bool { return r.Name == name && r.When.Metric == w.alerts[name].When.Metric }) {
			s.endAlert(w, w.alerts[name], w.alerts[name].Value, at)
		}
	}

	for i := range rules {
		rule := &rules[i]
		m, a := w.measure(&rule.When, at, s.table), w.alerts[rule.Name]
		switch {
		case m.holds && a == nil:
			a = s.addAlert(w, rule, at)
		case !m.holds && a != nil:
			s.endAlert(w, a, m.value, at)
			continue
		case !m.holds:
			continue
		}

		// The rule as it is when the alert begins, also where it has changed while the condition held.
		if a.StartedMS == 0 && at >= a.Since+event.ID(rule.When.ForSeconds)*second {
			a.When, a.StartedMS, a.Value = rule.When, at.Milli(), m.value
			s.table.recordChange(a)
			s.announce(a, event.NameAlertStarted, a.StartedMS, 0)
		}
	}

	w.due = min(until, w.reviewTime(rules, since, at, s.table))
	if len(w.alerts) == 0 && !w.isWatched(s.table.intervals.hourStart(at)) {
		delete(s.watches, w.key)
		s.reviews.remove(w)
		return
	}

	s.reviews.fix(w)
}

func (s *alertWatches) addAlert(w *alertWatch, rule *AlertRule, at event.ID) *alert {
	id := newAlertID(w, rule, at, s.table.last.Partition())
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

	s.table.add(a)
	w.alerts[a.Name] = a
	return a
}

// endAlert ends an alert. One that has not begun is forgotten.
func (s *alertWatches) endAlert(w *alertWatch, a *alert, value float64, at event.ID) {
	delete(w.alerts, a.Name)
	if a.StartedMS == 0 {
		s.table.remove(a)
		return
	}

	a.EndedMS, a.Value = at.Milli(), value
	s.table.recordChange(a)
	s.announce(a, event.NameAlertEnded, a.EndedMS, 1)
}

// announce adds the message of an alert's begin or end to those to produce.
func (s *alertWatches) announce(a *alert, name event.Name, atMS int64, number uint64) {
	s.messages = append(s.messages, a.message(name, atMS, number))
}

// dueAccount returns the account of the first alert that the passing of time may change by a
// time, among accounts that exist; "": none.
func (s *alertWatches) dueAccount(by event.ID, inDirectory func(account string) bool) string {
	for _, e := range s.reviews {
		h := e.commonHeader()
		if h.due <= by && inDirectory(h.key.account.Value()) {
			return h.key.account.Value()
		}
	}
	return ""
}

// announceDifferences ends the alerts that had begun in the table before and never did in this one,
// and announces those that have begun here alone.
func (s *alertWatches) announceDifferences(before *entryTable) {
	for _, e := range before.sorted() {
		a, ok := e.(*alert)
		if !ok || a.StartedMS == 0 || a.EndedMS != 0 || s.table.entries[a.key] != nil {
			continue
		}

		ended := *a
		ended.header, ended.EndedMS = header{key: a.key}, s.table.last.Milli()
		s.table.insert(&ended)
		s.announce(&ended, event.NameAlertEnded, ended.EndedMS, 1)
	}

	for _, e := range s.table.sorted() {
		a, ok := e.(*alert)
		if ok && a.StartedMS != 0 && a.EndedMS == 0 && before.entries[a.key] == nil {
			s.announce(a, event.NameAlertStarted, a.StartedMS, 0)
		}
	}
}
