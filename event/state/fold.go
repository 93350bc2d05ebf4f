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
	// LegOf, of the event of a leg, reports whether an agent has the leg's device; nil: unknown.
	// Apply finds by it the agent that answers a call of its queue.
	LegOf func(agentID string) bool
	// Past is what has happened to the event's call before it. Apply sets it.
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
	// Before foldFacts, which adds the event itself.
	e.Past, _ = p.historyBefore(e, call)
	p.foldIdentity(e)
	e.Facts.AgentState = cmp.Or(p.foldFacts(e, agent, call), e.Facts.AgentState)
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
		&f.OriginationCallID, &f.Caller, &f.Callee, &f.Reason, &f.Contact, (*string)(&f.Name), (*string)(&f.State),
		(*string)(&f.PreviousState)} {
		// As json.Marshal does: U+FFFD for each byte. strings.ToValidUTF8 writes one for several.
		if !utf8.ValidString(*text) {
			*text = string([]rune(*text))
		}
	}

	if f.Agent != nil && !(utf8.ValidString(f.Agent.Reason) && utf8.ValidString(f.Agent.OtherID)) {
		said := *f.Agent
		said.Reason, said.OtherID = string([]rune(said.Reason)), string([]rune(said.OtherID))
		f.Agent = &said
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

// foldAgent updates the event's agent, and returns its state. call is the event's call
// after it, nil: none.
func (p *Partition) foldAgent(e *Event, agent, call *Entry) event.State {
	f := &e.Facts
	if f.AgentID == "" || len(f.AgentID) > maxText || agent != nil && agent.EventID >= e.ID {
		return ""
	}

	known, shows := e.nextAgent(agent, call)
	// Of whom nothing is known, only a queue makes an agent.
	if agent == nil && shows.state == "" && f.Name != event.NameAgentQueueJoin {
		return ""
	}

	next := e.copyOrNew(Agent, f.AgentID, agent)
	next.AgentID = f.AgentID
	setUnlessEmpty(&next.AgentName, f.AgentName)

	switch f.Name {
	case event.NameAgentQueueJoin, event.NameAgentLogin:
		next.Queues = addQueue(next.Queues, f.QueueID)
	case event.NameAgentQueueLeave, event.NameAgentLogout:
		next.Queues = removeQueue(next.Queues, f.QueueID)
	default:
		if f.Agent != nil && f.Agent.Device != "" { // only a member is told of
			next.Queues = addQueue(next.Queues, f.QueueID)
		}
	}

	p.showAgent(e, &next, agent, &known, shows, call)
	p.releaseCalls(e, agent, &known)
	if f.Agent != nil && f.Agent.OtherID != "" {
		p.setOtherID(e)
	}

	return shows.state
}

// setOtherID records another id of the event's agent: what it is told under that id is told
// of the agent (see complete).
func (p *Partition) setOtherID(e *Event) {
	id := emptyIfTooLong(e.Facts.Agent.OtherID)
	other := p.lookup(e.Account, Agent, id)
	// One that has queues or calls of its own is another agent.
	if id == "" || id == e.Facts.AgentID ||
		other != nil && (len(other.Queues) > 0 || len(other.WhatIsKnown().Calls) > 0) {
		return
	}

	// Offline, so that no snapshot shows the agent twice.
	next := Entry{AccountID: e.Account, Kind: Agent, ID: id, Since: e.since(), Source: emptyIfTooLong(e.Source),
		Facts: event.Facts{Name: e.Facts.Name, AgentID: id, State: event.Offline},
		Known: &Known{SameAs: e.Facts.AgentID}}

	if other != nil && other.Known != nil && other.Known.SameAs == e.Facts.AgentID {
		next.Since, next.Name = other.Since, other.Name
	}

	p.put(&next, other, e.ID)
}

// showAgent writes an agent's entry with what is known of it.
func (p *Partition) showAgent(e *Event, next, before *Entry, known *Known, shows shown, call *Entry) {
	e.setState(next, shows.state)
	if before != nil && before.State == event.Break && next.State == event.Break {
		next.Since = max(next.Since, e.breakSetAgain(before, known))
	}

	next.Reason, next.AfterCall = shows.reason, shows.after
	p.showCall(e, next, before, known, call)

	if before == nil || !known.equal(before.Known) {
		next.Known = known
	}

	p.put(next, before, e.ID)
}

// breakSetAgain returns when an agent's break was set again while it lasted, for platforms
// that tell this: a status, or the pause that began last. Unix seconds; 0: it was not.
func (e *Event) breakSetAgain(before *Entry, known *Known) int64 {
	f, was := &e.Facts, before.WhatIsKnown()
	if f.Agent == nil || f.AgentID != before.ID {
		return 0
	}
	if f.Agent.Presence == event.Break {
		return e.since()
	}

	pause, former := known.pausedEverywhere(), was.pausedEverywhere()
	if pause == nil || former == nil || pause.PausedSince <= former.PausedSince {
		return 0
	}

	return e.clampToLog(pause.PausedSince*1000) / 1000
}

// showCall sets the one of an agent's calls that its entry shows: rather one on which it
// talks than one that rings, and rather a caller in a queue than a leg.
func (p *Partition) showCall(e *Event, next, before *Entry, known *Known, changed *Entry) {
	var best *Entry
	rank := 0
	for _, c := range known.Calls {
		call := changed
		if call == nil || call.ID != c.ID {
			call = p.lookup(e.Account, Call, c.ID)
		}
		if call == nil {
			continue
		}

		r := 1
		if !c.Ringing {
			r += 2
		}
		if call.EnteredMS != 0 {
			r++
		}
		if r > rank {
			best, rank = call, r
		}
	}

	switch f := &e.Facts; {
	case best != nil:
		next.CallID, next.Caller, next.Callee = best.ID, best.Caller, best.Callee
		next.InteractionID, next.OriginationCallID = best.InteractionID, best.OriginationCallID
		setUnlessEmpty(&next.QueueID, best.QueueID)
	case !onCall(next.State) || len(known.Calls) > 0:
		next.CallID, next.Caller, next.Callee, next.InteractionID, next.OriginationCallID = "", "", "", "", ""

	// a call that has no entry
	case subjectOf(f) == aboutAgent && f.AgentID == next.ID && f.CallID != "" && onCall(f.State):
		next.CallID, next.Caller, next.Callee = emptyIfTooLong(f.CallID), emptyIfTooLong(f.Caller), emptyIfTooLong(
			f.Callee)
		next.InteractionID, next.OriginationCallID = emptyIfTooLong(f.InteractionID), emptyIfTooLong(
			f.OriginationCallID)
		setUnlessEmpty(&next.QueueID, f.QueueID)
	case before != nil && before.Known != nil && before.Known.hasCall(next.CallID):
		next.CallID, next.Caller, next.Callee, next.InteractionID, next.OriginationCallID = "", "", "", "", ""
	}
}

// releaseAgents takes the call from the agents that had it before the event and do not
// have it any more.
func (p *Partition) releaseAgents(e *Event, before, after *Entry) {
	if before == nil {
		return
	}

	release := func(id string) {
		if id != "" && id != e.Facts.AgentID && !after.isWith(id) {
			p.releaseAgent(e, id, after.ID)
		}
	}

	// While the call rings, its AgentID is one of Ringing.
	if before.State == event.Talking || before.State == event.Held || len(before.Ringing) == 0 {
		release(before.AgentID)
	}

	for _, id := range before.Ringing {
		release(id)
	}
}

// releaseAgent takes a call from an agent.
func (p *Partition) releaseAgent(e *Event, id, call string) {
	agent := p.lookup(e.Account, Agent, id)
	if agent == nil {
		return
	}

	known := agent.WhatIsKnown()
	if !known.hasCall(call) {
		return
	}

	known.dropCall(call)
	next := e.copyOrNew(Agent, id, agent)
	p.showAgent(e, &next, agent, &known, known.showAfter(agent, e.EffectiveMillis()), nil)
}

// releaseExpired takes a call whose end was never told from its agents, at the time of the
// event now. They get the id of the event before, since now may be about one of them and is
// folded afterwards.
func (p *Partition) releaseExpired(call *Entry, before, now event.ID) {
	if !call.Live() {
		return
	}

	at := &Event{ID: before, Account: call.AccountID, Timestamp: now.Milli() / 1000, Source: call.Source,
		Facts: event.Facts{Name: event.NameOther}}
	for _, agent := range append([]string{call.AgentID}, call.Ringing...) {
		p.releaseAgent(at, agent, call.ID)
	}
}

// releaseCalls takes from the agent the calls that it has no longer: its platform said
// that it does nothing.
func (p *Partition) releaseCalls(e *Event, before *Entry, known *Known) {
	if before == nil {
		return
	}

	for _, had := range before.WhatIsKnown().Calls {
		if known.hasCall(had.ID) {
			continue
		}

		call := p.lookup(e.Account, Call, had.ID)
		if call == nil || !call.isWith(before.ID) {
			continue
		}

		next := *call
		next.Ringing = without(call.Ringing, before.ID)
		if call.AgentID == before.ID {
			next.AgentID, next.AgentName = "", ""
			if call.State == event.Talking || call.State == event.Held { // the caller was sent on, or is gone
				next.EnteredMS = 0
			}
		}

		if call.State == event.Ringing {
			if len(next.Ringing) > 0 {
				next.AgentID = next.Ringing[len(next.Ringing)-1]
			} else {
				e.setState(&next, event.Waiting)
			}
		}

		p.put(&next, call, e.ID)
	}
}

// isWith reports whether an agent talks on the call or it rings at the agent.
func (e *Entry) isWith(agent string) bool {
	switch e.State {
	case event.Talking, event.Held:
		return e.AgentID == agent || slices.Contains(e.Ringing, agent)
	case event.Ringing:
		return slices.Contains(e.Ringing, agent) || len(e.Ringing) == 0 && e.AgentID == agent
	}
	return false
}

// assignsCallToAgent reports whether the event assigns the call to its agent.
func assignsCallToAgent(f *event.Facts) bool {
	switch f.Name {
	case event.NameQueueCallOffered, event.NameQueueCallAnswered, event.NameCallRinging, event.NameCallAnswered,
		event.NameCallBridged,
		event.NameCallTransferred:
		return f.AgentID != ""
	case event.NameAgentState:
		return f.AgentID != "" && onCall(f.State) && f.Agent == nil
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

// nextCall returns the event's call after it: a new entry, or call itself if the event
// does not change it; nil: none. call is its entry before the event.
func (e *Event) nextCall(call *Entry) *Entry {
	f := &e.Facts
	after := nextCallState(f, call)
	if f.CallID == "" || len(f.CallID) > maxText || after == "" {
		return nil
	}
	if call != nil && (call.EventID >= e.ID || call.endsFormerVisit(f)) {
		return call
	}

	if call != nil && call.State == event.Ended && after != event.Ended {
		call = reopened(f, call)
	}

	next := e.copyOrNew(Call, f.CallID, call)
	next.CallID = f.CallID
	now, oldState := e.EffectiveMillis(), next.State
	e.setState(&next, after)

	// That a comparison found it is no reason for the state of a call that goes on.
	if subjectOf(f) == aboutCall && (f.Reason != event.ReasonResync || after == event.Ended) {
		setUnlessEmpty(&next.Reason, f.Reason)
	}

	setUnlessEmpty(&next.QueueID, f.QueueID)
	setUnlessEmpty(&next.Caller, f.Caller)
	setUnlessEmpty(&next.Callee, f.Callee)
	setUnlessEmpty(&next.InteractionID, f.InteractionID)
	setUnlessEmpty(&next.OriginationCallID, f.OriginationCallID)
	next.Leg = next.Leg || isOfLeg(f)

	foldCallAgent(f, &next)
	foldVisit(f, &next, call, oldState, now)
	if after != event.Waiting && after != event.Ringing {
		next.Position = 0
	}
	if f.WaitMS.Known {
		next.WaitMS = f.WaitMS
	}
	if after == event.Ended && f.TalkMS.Known {
		next.TalkMS = f.TalkMS
	}

	return &next
}

// reopened returns what remains of an ended call that an event begins again; nil: nothing.
func reopened(f *event.Facts, call *Entry) *Entry {
	if f.Name != event.NameQueueCallEnded {
		return nil
	}
	leg := *call // it did not end: only its visit to the queue did
	leg.TalkMS = event.Millis{}
	return &leg
}

// isOfLeg reports whether an event is one of a leg, whose end has an event too.
func isOfLeg(f *event.Facts) bool {
	switch f.Name {
	case event.NameCallCreated, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged:
		return f.AgentID == "" || f.Name == event.NameCallCreated
	}
	return false
}

// foldVisit updates the call's visit to a queue. before is its entry before the event,
// nil: none, or the call is a new one.
func foldVisit(f *event.Facts, next, before *Entry, oldState event.State, now int64) {
	visited := before != nil && before.Visits()
	switch {
	case f.Name == event.NameQueueCallEntered:
		// A platform may tell one entry in several events; after a talk it is another visit.
		if next.EnteredMS == 0 || oldState == event.Talking || oldState == event.Held {
			next.EnteredMS, next.AnsweredMS, next.WaitMS = now, 0, event.Millis{}
			next.Position = f.Position
		}
		return
	case f.Name == event.NameQueueCallEnded && next.State != event.Ended: // its leg goes on
		next.QueueID, next.EnteredMS, next.AnsweredMS = "", 0, 0
		return
	case visited && leavesQueue(f, before): // whether an agent answers is told by the next event
		next.QueueID = ""
		return
	case (f.Name == event.NameQueueCallOffered || f.Name == event.NameQueueCallAnswered) && next.EnteredMS == 0 &&
		next.QueueID != "":
		// No event has reported when the caller entered: it was before this event by the wait, if the event has one.
		next.EnteredMS = now - f.WaitMS.Value
	}

	if next.State == event.Talking && next.AnsweredMS == 0 && f.Name != event.NameAgentState {
		next.AnsweredMS = now
	}
}

// leavesQueue reports whether an event says that the caller waits no longer, and not
// whether an agent answers.
func leavesQueue(f *event.Facts, call *Entry) bool {
	return f.Name == event.NameOther && f.State == event.Talking &&
		(call.State == event.Waiting || call.State == event.Ringing)
}

// foldCallAgent sets the call's agent and the agents at whom it rings.
func foldCallAgent(f *event.Facts, call *Entry) {
	agent, name := emptyIfTooLong(f.AgentID), emptyIfTooLong(f.AgentName)
	switch {
	case call.State == event.Waiting:
		call.AgentID, call.AgentName, call.Ringing = "", "", nil
	case call.State == event.Ended:
		call.Ringing = nil
		// An agent at whom an abandoned call only rang has not had it.
		if call.AgentID == "" && f.Name != event.NameQueueCallAbandoned {
			call.AgentID, call.AgentName = agent, name
		}
	case f.Name == event.NameQueueCallEnded:
		call.AgentID, call.AgentName, call.Ringing = "", "", nil

	// see leavesQueue
	case f.Name == event.NameOther && f.State == event.Talking && call.EnteredMS != 0 && call.AnsweredMS == 0:
		call.AgentID, call.AgentName, call.Ringing = "", "", nil // whose phone still rings is told by the phone
	case call.State == event.Ringing &&
		(f.Name == event.NameAgentNoAnswer || f.Name == event.NameOther && f.State == event.Waiting):
		call.Ringing = without(call.Ringing, agent)
		if call.AgentID == agent && len(call.Ringing) > 0 {
			call.AgentID, call.AgentName = call.Ringing[len(call.Ringing)-1], ""
		}
	case agent == "" || !assignsCallToAgent(f):
	case call.State == event.Ringing:
		if !slices.Contains(call.Ringing, agent) {
			ringing := make([]string, len(call.Ringing)+1)
			copy(ringing, call.Ringing)
			ringing[len(call.Ringing)] = agent
			call.Ringing = ringing
		}

		call.AgentID, call.AgentName = agent, name
	case f.Name != event.NameQueueCallOffered && f.Name != event.NameCallRinging:
		call.AgentID, call.AgentName, call.Ringing = agent, name, nil
	}

	if call.State == event.Ringing && len(call.Ringing) == 0 && call.AgentID != "" {
		call.Ringing = []string{call.AgentID}
	}
}

// without returns texts without one of them; the slice is new.
func without(texts []string, text string) []string {
	at := slices.Index(texts, text)
	switch {
	case at < 0:
		return texts
	case len(texts) == 1:
		return nil
	}
	return slices.Delete(slices.Clone(texts), at, at+1)
}

func (p *Partition) foldDevice(e *Event) {
	f := &e.Facts
	name := deviceOf(f)
	device := p.lookup(e.Account, Device, name)
	if name == "" || len(name) > maxText || device != nil && device.EventID >= e.ID {
		return
	}

	state := event.Registered
	if f.Name == event.NameDeviceUnregistered {
		state = event.Unregistered
		if device == nil {
			return
		}
	}

	next := e.copyOrNew(Device, name, device)
	e.setState(&next, state)
	next.Contacts = nextContacts(f, device)
	setUnlessEmpty(&next.Reason, f.Reason)
	setUnlessEmpty(&next.AgentID, f.AgentID)
	setUnlessEmpty(&next.AgentName, f.AgentName)
	setUnlessEmpty(&next.Caller, f.Caller)
	setUnlessEmpty(&next.Callee, f.Callee)
	p.put(&next, device, e.ID)
}

// deviceOf returns the device of an event about one.
func deviceOf(f *event.Facts) string {
	if f.AgentID != "" {
		return f.AgentID
	}
	return f.Caller
}

// nextContacts returns the registrations of a device after an event. device is its entry
// before, nil: none.
func nextContacts(f *event.Facts, device *Entry) []string {
	var contacts []string
	if device != nil {
		contacts = device.Contacts
	}

	contact := emptyIfTooLong(f.Contact)
	switch {
	case f.Name == event.NameDeviceUnregistered:
		return nil
	case contact == "":
		return contacts
	case f.Name == event.NameOther: // this one is gone
		return without(contacts, contact)
	}

	at, known := slices.BinarySearch(contacts, contact)
	if known || len(contacts) == maxContacts {
		return contacts
	}

	return slices.Insert(slices.Clone(contacts), at, contact)
}

// maxContacts bounds the registrations of one device.
const maxContacts = 32

// setUnlessEmpty replaces a text by a newer one, unless that is empty.
func setUnlessEmpty(text *string, newer string) {
	newer = emptyIfTooLong(newer)
	if newer != "" {
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
