package stats

import (
	"time"

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
	table        *entryTable
	rows         *rows
	agents       *agentFold
	calls        *callFold
	performances *performances
	alerts       *alertWatches
	onExpire     func(entry) // called before an expired entry is deleted; nil: not called
}

// NewFold returns the figures before any event.
func NewFold(rules Rules) *Fold {
	table := newEntryTable(intervals{rules.Interval, rules.Late}, rules.Alerts != nil)
	rows := &rows{table: table, thresholds: rules.Thresholds, max: rules.MaxRows}
	agents := &agentFold{table, rows}

	return &Fold{table: table, rows: rows, agents: agents, calls: &callFold{table, rows, agents},
		performances: &performances{table: table}, alerts: newAlertWatches(table, rules.Alerts)}
}

// Last returns the id of the last folded event, 0: none.
func (f *Fold) Last() event.ID { return f.table.last }

// Ignored returns the number of events that were too late for their interval, or whose
// account had MaxRows in it.
func (f *Fold) Ignored() int64 { return f.rows.ignored }

// Changed returns the number of records for the next Flush.
func (f *Fold) Changed() int { return len(f.table.dirty) }

// ChangedBytes estimates the size of the records for the next Flush.
func (f *Fold) ChangedBytes() int { return f.table.bytes }

// Apply folds the next event. An event at or below the last folded one changes
// nothing.
func (f *Fold) Apply(e *state.Event) {
	if e.ID <= f.table.last {
		return
	}

	f.Advance(e.ID)
	if !Counts(e.Facts.Name) {
		return
	}
	defer f.alerts.reviewChanged()

	if e.Facts.Name == event.NameFeedConnected || e.Facts.Name == event.NameFeedDisconnected {
		foldFeed(f.table, e)
		return
	}

	// The call comes first: it makes the agent free whose phone rang before another one answered. But whose
	// call it was before the event decides what the event means for the agent.
	at := e.EffectiveMillis()
	c := f.calls.callOf(e)
	another := c != nil && c.Agent != e.Facts.AgentID
	f.calls.foldEvent(e, c, at)
	f.agents.foldEvent(e, another, at)
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
	if id <= f.table.last {
		return
	}

	// Alerts first: they are of what was there when they were due, before entries expire.
	f.table.last = id
	f.alerts.reviewDue()
	defer f.alerts.reviewChanged()

	for n := 0; n < maxDuePerEvent && f.table.timers.nextDue() <= id; n++ {
		switch e := f.table.timers[0].(type) {
		case *agent:
			if f.table.intervals.agentExpiry(e) <= id {
				f.table.remove(e)
				continue
			}

			// One interval at a time: an agent of long ago is due again at once, with the next of maxDuePerEvent.
			f.agents.creditInterval(e)
		case *openInterval:
			f.performances.complete(e)
		default:
			if f.onExpire != nil {
				f.onExpire(e)
			}
			f.table.remove(e)
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

// TakePerformances returns the messages of agents that became due since the last call.
func (f *Fold) TakePerformances() []Performance {
	due := f.performances.messages
	f.performances.messages = nil
	return due
}

// TakeAlerts returns the messages of alerts that became due since the last call.
func (f *Fold) TakeAlerts() []AlertMessage {
	due := f.alerts.messages
	f.alerts.messages = nil
	return due
}

// Flush calls give with the records of all entries that changed since the last
// Flush, ordered by key.
func (f *Fold) Flush(give func(Record)) { f.table.takeRecords(give) }

// discard drops the pending output of Flush, TakePerformances and TakeAlerts.
func (f *Fold) discard() {
	f.table.dropDirty()
	f.performances.messages, f.alerts.messages = nil, nil
}

// Load adds records read from cc.stats, values by key, and sets the last folded event.
// The fold must be new. It returns the unknown keys.
func (f *Fold) Load(values map[string][]byte, last event.ID) (foreign []string) {
	f.table.last = last
	foreign = f.table.insertRecords(values)
	f.alerts.begin()
	return foreign
}
