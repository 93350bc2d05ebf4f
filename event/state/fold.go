package state

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"trunkline/event"
)

// maxText bounds ids and texts of entries, in bytes.
const maxText = 256

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
}

// ParseEvent parses the key, the value and the header event.HeaderIdentity of a record
// of cc.evt. ok is false for an event written before messages had facts; it has no
// name then.
func ParseEvent(key, value, identity []byte) (e Event, ok bool, err error) {
	if e.ID, err = event.MessageID(value); err != nil {
		return Event{}, false, err
	}
	m, ok, err := event.MessageFacts(value)
	if err != nil {
		return Event{}, false, err
	}
	if identity != nil {
		if e.Identity, err = event.ParseIdentity(string(identity)); err != nil {
			return Event{}, false, err
		}
	}
	e.Account, e.Timestamp, e.Source, e.Facts = string(key), m.Timestamp, m.Metadata.Source, m.Metadata.Facts
	return e, ok, nil
}

// Apply completes the facts of the next event from the state before it, and folds
// them. An event at or below the last folded one changes nothing, and its facts remain
// unchanged.
func (p *Partition) Apply(e *Event) {
	if e.ID <= p.lastFolded {
		return
	}
	p.advance(e.ID)
	cleanText(&e.Facts)
	agent, call := p.complete(e)
	p.foldIdentity(e)
	p.foldFacts(e, agent, call)
}

// Fold folds the next event, whose message already contains the completed facts.
func (p *Partition) Fold(e *Event) {
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
		&f.OriginationCallID, &f.Caller, &f.Callee, &f.Reason, (*string)(&f.Name), (*string)(&f.State), (*string)(&f.PreviousState)} {
		if !utf8.ValidString(*text) {
			*text = string([]rune(*text))
		}
	}
}

// subject is the main entry that an event changes.
type subject uint8

const (
	aboutNothing subject = iota // nothing with a state
	aboutAgent
	aboutCall
	aboutDevice
)

func subjectOf(f *event.Facts) subject {
	switch f.Name {
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd, event.NameAgentState,
		event.NameAgentQueueJoin, event.NameAgentQueueLeave, event.NameAgentNoAnswer:
		return aboutAgent
	case event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered, event.NameQueueCallAbandoned, event.NameQueueCallEnded,
		event.NameCallCreated, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged, event.NameCallHeld,
		event.NameCallResumed, event.NameCallTransferred, event.NameCallDTMF, event.NameCallEnded:
		return aboutCall
	case event.NameDeviceRegistered, event.NameDeviceUnregistered:
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

func (e *Event) clampToLog(millis int64) int64 {
	if logged := e.ID.Milli(); millis > logged+MaxClockSkew.Milliseconds() {
		return logged
	}
	return millis
}

// foldFacts updates the entries according to the event's facts. agent and call are
// those before it, nil: none.
func (p *Partition) foldFacts(e *Event, agent, call *Entry) {
	f := &e.Facts
	switch subjectOf(f) {
	case aboutNothing:
		return
	case aboutDevice:
		p.foldDevice(e)
		return
	}
	p.foldAgent(e, agent, call)
	if len(f.CallID) <= maxText && f.CallID != "" {
		p.foldCall(e, call)
	}
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

// setState sets the entry's state after the event.
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

func (p *Partition) foldAgent(e *Event, agent, call *Entry) {
	f := &e.Facts
	if f.AgentID == "" || len(f.AgentID) > maxText {
		return
	}
	after := nextAgentState(f, agent, call)
	if agent == nil && after.State == "" && f.Name != event.NameAgentQueueJoin || agent != nil && agent.EventID >= e.ID {
		return
	}
	next := e.copyOrNew(Agent, f.AgentID, agent)
	next.AgentID = f.AgentID
	e.setState(&next, after.State)
	next.AfterCall = after.AfterCall
	if subjectOf(f) == aboutAgent && f.State != "" {
		next.Reason = emptyIfTooLong(f.Reason)
	}
	setUnlessEmpty(&next.AgentName, f.AgentName)
	switch {
	case onCall(after.State):
		if f.CallID != "" && (next.CallID == "" || subjectOf(f) == aboutAgent || assignsCallToAgent(f) && replacesCurrentCall(f, agent)) {
			next.CallID, next.Caller, next.Callee = emptyIfTooLong(f.CallID), emptyIfTooLong(f.Caller), emptyIfTooLong(f.Callee)
			next.InteractionID, next.OriginationCallID = emptyIfTooLong(f.InteractionID), emptyIfTooLong(f.OriginationCallID)
			setUnlessEmpty(&next.QueueID, f.QueueID)
		}
	case agent.currentAgentState().KeepsCall(f, after.State):
	default:
		next.CallID, next.Caller, next.Callee, next.InteractionID, next.OriginationCallID = "", "", "", "", ""
	}
	switch f.Name {
	case event.NameAgentQueueJoin, event.NameAgentLogin:
		next.Queues = addQueue(next.Queues, f.QueueID)
	case event.NameAgentQueueLeave, event.NameAgentLogout:
		next.Queues = removeQueue(next.Queues, f.QueueID)
	}
	p.put(&next, agent, e.ID)
}

// replacesCurrentCall reports whether the event's call replaces the agent's current call. A
// call that only rings while the agent talks does not replace the current one.
func replacesCurrentCall(f *event.Facts, agent *Entry) bool {
	return agent == nil || agent.State != event.Talking || f.Name != event.NameQueueCallOffered && f.Name != event.NameCallRinging
}

// assignsCallToAgent reports whether the event assigns the call to its agent.
func assignsCallToAgent(f *event.Facts) bool {
	switch f.Name {
	case event.NameQueueCallOffered, event.NameQueueCallAnswered, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged,
		event.NameCallTransferred:
		return f.AgentID != ""
	}
	return false
}

// addQueue and removeQueue return new slices, because entries are immutable.
func addQueue(queues []string, queue string) []string {
	at, in := slices.BinarySearch(queues, queue)
	if in || queue == "" || len(queue) > maxText || len(queues) == maxQueues {
		return queues
	}
	return slices.Insert(slices.Clone(queues), at, queue)
}

func removeQueue(queues []string, queue string) []string {
	at, in := slices.BinarySearch(queues, queue)
	if !in {
		return queues
	}
	if len(queues) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(queues), at, at+1)
}

// foldCall updates the event's call. call is its entry before the event.
func (p *Partition) foldCall(e *Event, call *Entry) {
	f := &e.Facts
	after := nextCallState(f, call)
	if after == "" || call != nil && call.EventID >= e.ID {
		return
	}
	before := call
	if call != nil && call.State == event.Ended && after != event.Ended {
		call = nil // start a new call
	}
	next := e.copyOrNew(Call, f.CallID, call)
	next.CallID = f.CallID
	now, oldState := e.EffectiveMillis(), next.State
	e.setState(&next, after)
	if subjectOf(f) == aboutCall {
		setUnlessEmpty(&next.Reason, f.Reason)
	}
	setUnlessEmpty(&next.QueueID, f.QueueID)
	setUnlessEmpty(&next.Caller, f.Caller)
	setUnlessEmpty(&next.Callee, f.Callee)
	setUnlessEmpty(&next.InteractionID, f.InteractionID)
	setUnlessEmpty(&next.OriginationCallID, f.OriginationCallID)
	p.foldCallAgent(e, &next)
	switch {
	case f.Name == event.NameQueueCallEntered && (next.EnteredMS == 0 || oldState == event.Talking || oldState == event.Held):
		next.EnteredMS, next.AnsweredMS, next.WaitMS = now, 0, event.Millis{}
	case after == event.Talking && next.AnsweredMS == 0:
		next.AnsweredMS = now
	}
	if f.WaitMS.Known {
		next.WaitMS = f.WaitMS
	}
	if after == event.Ended && f.TalkMS.Known {
		next.TalkMS = f.TalkMS
	}
	p.put(&next, before, e.ID)
}

// foldCallAgent sets the call's agent. If another agent answers, the agent whose phone
// was ringing becomes available.
func (p *Partition) foldCallAgent(e *Event, call *Entry) {
	f := &e.Facts
	switch {
	case call.State == event.Waiting:
		call.AgentID, call.AgentName = "", ""
	case call.State == event.Ended:
		if call.AgentID == "" && f.Name != event.NameQueueCallAbandoned {
			call.AgentID, call.AgentName = emptyIfTooLong(f.AgentID), emptyIfTooLong(f.AgentName)
		}
	case assignsCallToAgent(f) && !(f.Name == event.NameQueueCallOffered && call.State != event.Ringing):
		if call.State == event.Talking && call.AgentID != f.AgentID {
			p.stopRinging(e, call)
		}
		call.AgentID, call.AgentName = emptyIfTooLong(f.AgentID), emptyIfTooLong(f.AgentName)
	}
}

// stopRinging makes the agent whose phone rang for the call available after another
// one has answered.
func (p *Partition) stopRinging(e *Event, call *Entry) {
	rang := p.lookup(e.Account, Agent, call.AgentID)
	if rang == nil || rang.State != event.Ringing || rang.CallID != call.ID {
		return
	}
	free := e.copyOrNew(Agent, rang.ID, rang)
	e.setState(&free, rang.currentAgentState().Free())
	free.AfterCall = ""
	free.CallID, free.Caller, free.Callee, free.InteractionID, free.OriginationCallID = "", "", "", "", ""
	p.put(&free, rang, e.ID)
}

func (p *Partition) foldDevice(e *Event) {
	f := &e.Facts
	name := f.AgentID
	if name == "" {
		name = f.Caller
	}
	device := p.lookup(e.Account, Device, name)
	if name == "" || len(name) > maxText || device != nil && device.EventID >= e.ID {
		return
	}
	state := event.Registered
	if f.Name == event.NameDeviceUnregistered {
		if state = event.Unregistered; device == nil {
			return
		}
	}
	next := e.copyOrNew(Device, name, device)
	e.setState(&next, state)
	setUnlessEmpty(&next.Reason, f.Reason)
	setUnlessEmpty(&next.AgentID, f.AgentID)
	setUnlessEmpty(&next.AgentName, f.AgentName)
	setUnlessEmpty(&next.Caller, f.Caller)
	setUnlessEmpty(&next.Callee, f.Callee)
	p.put(&next, device, e.ID)
}

// setUnlessEmpty replaces a text by a newer one, unless that is empty.
func setUnlessEmpty(text *string, newer string) {
	if newer = emptyIfTooLong(newer); newer != "" {
		*text = newer
	}
}

// emptyIfTooLong returns a text, or "" if it is longer than maxText.
func emptyIfTooLong(text string) string {
	if len(text) > maxText {
		return ""
	}
	return text
}
