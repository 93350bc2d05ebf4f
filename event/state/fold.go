package state

import (
	"cmp"
	"time"
	"unicode/utf8"

	"trunkline/event"
)

// maxTextBytes bounds ids and texts of entries, in bytes.
const maxTextBytes = 256

// maxQueues bounds the queues of one agent.
const maxQueues = 256

// Event is an event of cc.evt as input of the fold.
type Event struct {
	ID        event.ID
	Account   string
	Timestamp int64  // of the message, Unix seconds
	Source    string // of the message's metadata
	Identity  event.Identity
	Facts     event.Facts
	// IsLegOf, of the event of a leg, reports whether an agent has the leg's device; nil: unknown.
	// CompleteAndFold finds by it the agent that answers a call of its queue.
	IsLegOf func(agentID string) bool
	// Past is what has happened to the event's call before it. CompleteAndFold sets it.
	Past *History
}

// ParseEvent parses the key, the value and the header event.HeaderIdentity of a record
// of cc.evt. ok is false for an event written before messages had facts; it has no
// name then.
func ParseEvent(key, value, identity []byte) (e Event, ok bool, err error) {
	e.ID, err = event.MessageID(value)
	if err != nil {
		return Event{}, false, err
	}

	m, ok, err := event.MessageFacts(value)
	if err != nil {
		return Event{}, false, err
	}

	if identity != nil {
		e.Identity, err = event.ParseIdentity(string(identity))
		if err != nil {
			return Event{}, false, err
		}
	}

	e.Account, e.Timestamp, e.Source, e.Facts = string(key), m.Timestamp, m.Metadata.Source, m.Metadata.Facts
	return e, ok, nil
}

// CompleteAndFold completes the facts of the next event from the state before it, and folds
// them. An event at or below the last folded one changes nothing, and its facts remain
// unchanged.
func (p *Partition) CompleteAndFold(e *Event) {
	if e.ID <= p.lastFolded {
		return
	}
	p.advance(e.ID)
	cleanText(&e.Facts)
	agent, call := p.complete(e)
	// Before foldFacts, which adds the event itself.
	e.Past, _ = p.historyBefore(e, call)
	p.foldIdentity(e)
	e.Facts.AgentState = cmp.Or(p.foldFacts(e, agent, call), e.Facts.AgentState)
}

// FoldCompleted folds the next event, whose facts CompleteAndFold has completed before: those of a message of cc.evt.
func (p *Partition) FoldCompleted(e *Event) {
	if e.ID <= p.lastFolded {
		return
	}
	p.advance(e.ID)
	p.foldIdentity(e)
	p.foldFacts(e, p.lookup(e.Account, Agent, e.Facts.AgentID), p.lookup(e.Account, Call, e.Facts.CallID))
}

// cleanText converts texts to what the message's JSON contains.
func cleanText(f *event.Facts) {
	for _, text := range [...]*string{&f.AgentID, &f.AgentName, &f.QueueID, &f.CallID, &f.InteractionID,
		&f.OriginationCallID, &f.Caller, &f.Callee, &f.Reason, &f.Contact, (*string)(&f.Name), (*string)(&f.State),
		(*string)(&f.PreviousState)} {
		// As json.Marshal does: U+FFFD for each byte. strings.ToValidUTF8 writes one for several.
		if !utf8.ValidString(*text) {
			*text = string([]rune(*text))
		}
	}

	if f.Agent != nil && !(utf8.ValidString(f.Agent.Reason) && utf8.ValidString(f.Agent.OtherID)) {
		report := *f.Agent
		report.Reason, report.OtherID = string([]rune(report.Reason)), string([]rune(report.OtherID))
		f.Agent = &report
	}
}

// subject is the kind of the main entry that an event changes.
type subject uint8

const (
	aboutNothing subject = iota // nothing with a state
	aboutAgent
	aboutCall
	aboutDevice
)

// subjectOf returns what an event is about.
func subjectOf(f *event.Facts) subject {
	switch f.Name {
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd,
		event.NameAgentState,
		event.NameAgentQueueJoin, event.NameAgentQueueLeave, event.NameAgentNoAnswer:
		return aboutAgent
	case event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered,
		event.NameQueueCallAbandoned, event.NameQueueCallEnded,
		event.NameCallCreated, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged, event.NameCallHeld,
		event.NameCallResumed, event.NameCallTransferred, event.NameCallDTMF, event.NameCallEnded:
		return aboutCall
	case event.NameDeviceRegistered, event.NameDeviceUnregistered:
		return aboutDevice
	}

	if f.Name == event.NameOther && f.Contact != "" { // one of the device's registrations is gone
		return aboutDevice
	}
	if f.CallID != "" && f.State != "" { // the state of a call, under another name
		return aboutCall
	}

	return aboutNothing
}

// lookup returns the entry before the current event, nil: none. It ignores expired
// entries that are not deleted yet, see maxExpirePerEvent.
func (p *Partition) lookup(account string, kind Kind, id string) *Entry {
	if id == "" {
		return nil
	}
	e := p.Find(Key{account, kind, id})
	if e != nil && e.Expires() <= p.lastFolded {
		return nil
	}
	return e
}

// MaxClockSkew is the maximum by which an event's time may exceed the time of its id.
// Above it, the id's time is used.
const MaxClockSkew = 5 * time.Minute

// EffectiveMillis returns the time at which the event counts, in Unix milliseconds.
func (e *Event) EffectiveMillis() int64 {
	return e.clampToLog(cmp.Or(e.Facts.TimestampMS, e.Timestamp*1000))
}

// since returns the time from which an entry has the event's state, in Unix seconds.
func (e *Event) since() int64 { return e.clampToLog(e.Timestamp*1000) / 1000 }

// clampToLog returns a time in Unix milliseconds, or that of the event's id if the time is too far ahead of it.
func (e *Event) clampToLog(millis int64) int64 {
	logged := e.ID.Milli()
	if millis > logged+MaxClockSkew.Milliseconds() {
		return logged
	}
	return millis
}

// foldFacts updates the entries according to the event's facts. agent and call are
// those before it, nil: none. It returns the state of the agent of an event about a call,
// "" if it has none.
func (p *Partition) foldFacts(e *Event, agent, call *Entry) event.State {
	subject := subjectOf(&e.Facts)
	switch subject {
	case aboutNothing:
		return ""
	case aboutDevice:
		p.foldDevice(e)
		return ""
	}

	// The call first: what the agent shows depends on it.
	after := e.nextCall(call)
	if after != nil && after != call {
		p.foldHistory(e, call, after)
		p.put(after, call, e.ID)
	}

	shows := p.foldAgent(e, agent, after)
	if after != nil {
		p.releaseAgents(e, call, after)
	}
	if subject != aboutCall {
		return ""
	}

	return shows
}

// copyOrNew returns the entry for the event to change: a copy of before (nil: none) with
// the event's source. Trunkline's own events about a call keep the entry's source,
// which is a platform.
func (e *Event) copyOrNew(kind Kind, id string, before *Entry) (next Entry) {
	if before != nil {
		next = *before
	} else {
		next = Entry{AccountID: e.Account, Kind: kind, ID: id, Since: e.since(),
			Facts: event.Facts{Name: e.Facts.Name, TimestampMS: e.Facts.TimestampMS}}
	}

	if e.Facts.Name != event.NameCallProgress {
		next.Source = emptyIfTooLong(e.Source)
	}

	return next
}

// setState sets the entry's state after the event, and since when it has it.
func (e *Event) setState(entry *Entry, s event.State) {
	if entry.State == s {
		return
	}
	entry.PreviousState, entry.PreviousSince = "", 0
	if entry.State != "" {
		entry.PreviousState, entry.PreviousSince = entry.State, entry.Since
	}
	entry.State, entry.Since = s, e.since()
	entry.Name, entry.Reason, entry.TimestampMS = e.Facts.Name, "", e.Facts.TimestampMS
}

// replaceUnlessEmpty replaces a text by a newer one, unless that is empty.
func replaceUnlessEmpty(text *string, newer string) {
	newer = emptyIfTooLong(newer)
	if newer != "" {
		*text = newer
	}
}

// emptyIfTooLong returns a text, or "" if it is longer than maxTextBytes.
func emptyIfTooLong(text string) string {
	if len(text) > maxTextBytes {
		return ""
	}
	return text
}
