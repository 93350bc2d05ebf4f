package stats

import (
	"cmp"
	"slices"
	"time"
	"unique"

	"trunkline/event"
	"trunkline/event/state"
)

const (
	// maxTextBytes bounds ids and texts of entries, in bytes, as in cc.state.
	maxTextBytes = 256
	// maxReasons bounds the reasons of breaks in one row; more count as "other".
	maxReasons     = 16
	maxReasonBytes = 64 // bytes; a longer one counts as "other"
	otherReason    = "other"
	// maxDuePerEvent bounds the entries that one event expires or adds time to: small
	// enough for one request, and more than an event can create.
	maxDuePerEvent = 64
	// openPerRow is how many calls, and agents, an account may have that are remembered between the
	// intervals, for each row that it may have: a call is for a day, an agent for a month.
	openPerRow = 10

	callExpiry      = 24 * time.Hour // as in cc.state
	agentExpiryAge  = 31 * 24 * time.Hour
	endedCallExpiry = 15 * time.Minute // a call that has ended
	// delay after the end of an interval before the time of agents without an event is added
	closeAfter = time.Minute
)

// Thresholds are the limits for a queue's service level. A row keeps those in force at
// the beginning of its interval.
type Thresholds struct {
	ServiceLevelSeconds int64 `json:"service_level_seconds"`
	ShortAbandonSeconds int64 `json:"short_abandon_seconds"`
}

// DefaultThresholds returns the thresholds of a queue for which none are
// configured.
func DefaultThresholds() Thresholds { return Thresholds{20, 5} }

// Rules holds the inputs of the figures other than the facts.
type Rules struct {
	Interval time.Duration
	Late     time.Duration // how long after its end an interval accepts late events
	// MaxRows bounds the rows of queues, and those of agents, of an account in one interval, and
	// openPerRow times as many its agents, and its calls; 0: no bound. Whoever posts events invents ids.
	MaxRows int
	// Thresholds returns the thresholds in force for a row that begins at start, Unix
	// seconds. It must always return the same for the same arguments.
	Thresholds func(account, queue string, start int64) Thresholds
	Alerts     alertRules // nil: no alerts
}

// Fold computes the figures of one partition of cc.evt: a pure function of its events'
// facts and of the rules. It is not safe for concurrent use.
type Fold struct {
	rules      Rules
	lastFolded event.ID // last folded event
	entries    map[key]entry
	timers     timers
	calls      map[interaction][]*call
	dirty      map[key]event.ID // entries changed since Flush, with the last event that changed them
	bytes      int              // estimated size of the changed records
	counts     [len(kinds)]int
	rowCounts  map[rowGroup]int
	tooLate    int64 // events too late for their interval, or left out because of MaxRows

	performances  []Performance // created since TakePerformances
	watches       map[key]*alertWatch
	reviews       timers                   // of watches
	touched       map[*alertWatch]struct{} // by the last event
	alertChanges  int64                    // as of the last scheduleReviews
	alertMessages []AlertMessage           // created since TakeAlerts
	onExpire      func(entry)              // called before an expired entry is deleted; nil: not called
}

// rowGroup is the rows of a kind that an account has in one interval.
type rowGroup struct {
	account unique.Handle[string]
	start   int64
	kind    kind
}

func (k key) rowGroup() rowGroup { return rowGroup{k.account, k.start, k.kind} }

// isFull reports whether the account may not have one more row, agent or call like k.
func (f *Fold) isFull(k key) bool {
	most := f.rules.MaxRows
	if !k.kind.hasInterval() {
		most *= openPerRow
	}
	return f.rules.MaxRows > 0 && f.rowCounts[k.rowGroup()] >= most
}

type interaction struct{ account, id unique.Handle[string] }

// NewFold returns the figures before any event.
func NewFold(rules Rules) *Fold {
	return &Fold{rules: rules, entries: map[key]entry{}, calls: map[interaction][]*call{},
		rowCounts: map[rowGroup]int{}, dirty: map[key]event.ID{},
		watches: map[key]*alertWatch{}, touched: map[*alertWatch]struct{}{}}
}

// Last returns the id of the last folded event, 0: none.
func (f *Fold) Last() event.ID { return f.lastFolded }

// Ignored returns the number of events that were too late for their interval, or whose
// account had MaxRows in it.
func (f *Fold) Ignored() int64 { return f.tooLate }

// Changed returns the number of records for the next Flush.
func (f *Fold) Changed() int { return len(f.dirty) }

// ChangedBytes estimates the size of the records for the next Flush.
func (f *Fold) ChangedBytes() int { return f.bytes }

// Apply folds the next event. An event at or below the last folded one changes
// nothing.
func (f *Fold) Apply(e *state.Event) {
	if e.ID <= f.lastFolded {
		return
	}

	f.Advance(e.ID)
	if !Counts(e.Facts.Name) {
		return
	}
	defer f.reviewTouched()

	if e.Facts.Name == event.NameFeedConnected || e.Facts.Name == event.NameFeedDisconnected {
		f.foldFeed(e)
		return
	}

	// The call comes first: it makes the agent free whose phone rang before another one answered. But whose
	// call it was before the event decides what the event means for the agent.
	at := e.EffectiveMillis()
	c := f.findCall(e)
	another := c != nil && c.Agent != e.Facts.AgentID
	f.foldCall(e, c, at)
	f.foldAgent(e, another, at)
}

// Counts reports whether events with a name can change figures. For others only the id
// matters, see Advance.
func Counts(name event.Name) bool {
	switch name {
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd,
		event.NameAgentState,
		event.NameAgentQueueJoin, event.NameAgentQueueLeave, event.NameAgentNoAnswer,
		event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered,
		event.NameQueueCallAbandoned, event.NameQueueCallEnded,
		event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged, event.NameCallHeld, event.NameCallResumed,
		event.NameCallTransferred, event.NameCallEnded, event.NameConferenceLeft,
		event.NameFeedConnected, event.NameFeedDisconnected:
		return true
	}

	return false
}

// Advance makes id the last folded event. First it handles all entries due by then:
// they expire, agents without an event get the time of their interval, alerts begin and end.
func (f *Fold) Advance(id event.ID) {
	if id <= f.lastFolded {
		return
	}

	// Alerts first: they are of what was there when they were due, before entries expire.
	f.lastFolded = id
	f.reviewDue(id)
	defer f.reviewTouched()

	for n := 0; n < maxDuePerEvent && len(f.timers) > 0 && f.timers[0].commonHeader().due <= id; n++ {
		switch e := f.timers[0].(type) {
		case *agent:
			if f.agentExpiry(e) <= id {
				f.remove(e)
				continue
			}

			// One interval at a time: an agent of long ago is due again at once, with the next of maxDuePerEvent.
			edge := f.intervalStart(e.CreditedMS) + f.intervalSeconds()
			f.addTime(e, e.State, e.Reason, e.CreditedMS, edge*1000, 1)
			e.CreditedMS = edge * 1000
			f.recordChange(e)
		case *openInterval:
			f.completeInterval(e)
		default:
			if f.onExpire != nil {
				f.onExpire(e)
			}
			f.remove(e)
		}
	}
}

func (f *Fold) intervalSeconds() int64 { return int64(f.rules.Interval / time.Second) }

// intervalStart returns the start of the interval that contains a time, in Unix seconds.
func (f *Fold) intervalStart(millis int64) int64 {
	seconds := millis / 1000
	return seconds - seconds%f.intervalSeconds()
}

// rowDue returns the id at which a row expires.
func (f *Fold) rowDue(start int64) event.ID {
	return event.ID((start+f.intervalSeconds())*int64(time.Second)) + event.ID(f.rules.Late)
}

// openQueueRow returns the row of a queue's interval, nil if it accepts no more events or
// the account may have no more rows.
func (f *Fold) openQueueRow(account, queue unique.Handle[string], start int64) *QueueRow {
	k := key{account, queue, start, kindQueue}
	if e, ok := f.entries[k]; ok {
		f.markDirty(k)
		f.observe(e, false)
		return e.(*QueueRow)
	}

	if f.rowDue(start) <= f.lastFolded || f.isFull(k) {
		return nil
	}

	limits := f.rules.Thresholds(account.Value(), queue.Value(), start)
	r := &QueueRow{header: header{key: k}, ServiceLevelSeconds: limits.ServiceLevelSeconds,
		ShortAbandonSeconds: limits.ShortAbandonSeconds}
	f.add(r)

	return r
}

// openAgentRow returns the row of an agent's interval, nil if it accepts no more events or
// the account may have no more rows.
func (f *Fold) openAgentRow(account, id unique.Handle[string], start int64) *AgentRow {
	k := key{account, id, start, kindAgent}
	if e, ok := f.entries[k]; ok {
		f.markDirty(k)
		return e.(*AgentRow)
	}
	if f.rowDue(start) <= f.lastFolded || f.isFull(k) {
		return nil
	}

	r := &AgentRow{header: header{key: k}}
	f.add(r)
	f.openIntervalOf(r)

	return r
}

// agentExpiry returns the id at which an agent without an event expires. A logged-out
// agent is kept while late events about the time before the logout may arrive, and longer
// where it is a member of queues: platforms do not repeat that at the next login.
func (f *Fold) agentExpiry(a *agent) event.ID {
	if a.isLoggedOut() && len(a.Queues) == 0 {
		return event.ID(a.Seen) + event.ID(f.rules.Late)
	}
	return event.ID(a.Seen) + event.ID(agentExpiryAge)
}

// isLoggedOut reports whether no time is counted for the agent.
func (a *agent) isLoggedOut() bool { return a.State == "" || a.State == event.Offline }

// dueOf returns the id at which an entry is due without an event.
func (f *Fold) dueOf(e entry) event.ID {
	switch e := e.(type) {
	case *call:
		switch {
		case e.Abandoned:
			return event.ID(e.Seen) + event.ID(f.rules.Late)
		case e.EndedMS != 0:
			return event.ID(e.Seen) + event.ID(endedCallExpiry)
		}

		return event.ID(e.Seen) + event.ID(callExpiry)
	case *agent:
		if e.isLoggedOut() {
			return f.agentExpiry(e)
		}
		return min(f.agentExpiry(e), f.intervalDue(f.intervalStart(e.CreditedMS)))
	case *openInterval:
		return f.intervalDue(e.key.start)
	case *alert:
		if e.EndedMS != 0 {
			return event.ID(e.EndedMS)*millisec + event.ID(f.rules.Late)
		}
		return never
	case *feed:
		return e.Seen + event.ID(feedAge)
	}

	return f.rowDue(e.commonHeader().key.start)
}

// add adds an entry created by the last event.
func (f *Fold) add(e entry) {
	f.insert(e)
	f.markDirty(e.commonHeader().key)
}

func (f *Fold) insert(e entry) {
	h := e.commonHeader()
	h.due = f.dueOf(e)
	f.entries[h.key] = e
	f.timers.add(e)
	f.counts[h.key.kind]++
	f.rowCounts[h.key.rowGroup()]++

	if c, ok := e.(*call); ok && c.Interaction != "" {
		at := c.interactionKey()
		f.calls[at] = append(f.calls[at], c)
	}

	f.observe(e, false)
}

// newestCall returns the call of an interaction that entered its queue last, nil: none.
func (f *Fold) newestCall(of interaction) (newest *call) {
	for _, c := range f.calls[of] {
		if newest == nil || cmp.Or(cmp.Compare(c.EnteredMS, newest.EnteredMS), c.key.compare(newest.key)) > 0 {
			newest = c
		}
	}
	return newest
}

func (c *call) interactionKey() interaction {
	return interaction{c.key.account, unique.Make(c.Interaction)}
}

// recordChange records that the last event has changed the entry of a call or agent.
func (f *Fold) recordChange(e entry) {
	e.commonHeader().due = f.dueOf(e)
	f.timers.fix(e)
	f.markDirty(e.commonHeader().key)
	f.observe(e, false)
}

func (f *Fold) markDirty(k key) {
	// A guess: the value is not encoded before it is written.
	const members = 420 // and framing
	if _, ok := f.dirty[k]; !ok {
		f.bytes += members + 2*(len(k.account.Value())+len(k.id.Value()))
	}
	f.dirty[k] = f.lastFolded
}

func (f *Fold) remove(e entry) {
	h := e.commonHeader()
	f.timers.remove(e)
	delete(f.entries, h.key)
	f.counts[h.key.kind]--
	f.rowCounts[h.key.rowGroup()]--
	if f.rowCounts[h.key.rowGroup()] == 0 {
		delete(f.rowCounts, h.key.rowGroup())
	}

	f.markDirty(h.key)
	f.observe(e, true)
	if c, ok := e.(*call); ok && c.Interaction != "" {
		at := c.interactionKey()
		left := slices.DeleteFunc(f.calls[at], func(o *call) bool { return o == c })
		if len(left) > 0 {
			f.calls[at] = left
		} else {
			delete(f.calls, at)
		}
	}
}

// emptyIfTooLong returns a text, or "" if it is longer than maxTextBytes.
func emptyIfTooLong(text string) string {
	if len(text) > maxTextBytes {
		return ""
	}
	return text
}

// Record is one record of cc.stats; a nil Value means that the entry was deleted.
type Record struct {
	Key     string
	Value   []byte
	EventID event.ID // the last event that changed the entry
}

// Flush calls give with the records of all entries that changed since the last
// Flush, ordered by key.
func (f *Fold) Flush(give func(Record)) {
	keys := make([]key, 0, len(f.dirty))
	for k := range f.dirty {
		keys = append(keys, k)
	}

	slices.SortFunc(keys, key.compare)
	for _, k := range keys {
		give(f.newRecord(k))
	}

	clear(f.dirty)
	f.bytes = 0
}

// discard drops the pending output of Flush, TakePerformances and TakeAlerts.
func (f *Fold) discard() {
	clear(f.dirty)
	f.bytes, f.performances, f.alertMessages = 0, nil, nil
}

func (f *Fold) newRecord(k key) Record {
	r := Record{Key: k.String(), EventID: f.dirty[k]}
	if e, ok := f.entries[k]; ok {
		r.Value = f.encode(e)
	}
	return r
}

// recordValue returns the value of a record by its key, nil: none.
func (f *Fold) recordValue(text string) []byte {
	k, err := parseKey(text)
	if err != nil {
		return nil
	}
	e, ok := f.entries[k]
	if !ok {
		return nil
	}
	return f.encode(e)
}

// Load adds records read from cc.stats, values by key, and sets the last folded event.
// The fold must be new. It returns the unknown keys.
func (f *Fold) Load(values map[string][]byte, last event.ID) (foreign []string) {
	f.lastFolded = last
	loaded := make([]entry, 0, len(values))
	for text, value := range values {
		k, err := parseKey(text)
		if err == nil {
			var e entry
			e, err = f.decode(k, value)
			if err == nil {
				loaded = append(loaded, e)
			}
		}
		if err != nil {
			foreign = append(foreign, text)
		}
	}

	for _, e := range loaded {
		f.insert(e)
	}

	if f.rules.Alerts != nil {
		f.alertChanges = f.rules.Alerts.alertChanges()
		f.scheduleReviews()
	}

	slices.Sort(foreign)
	return foreign
}
