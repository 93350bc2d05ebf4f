package state

import (
	"slices"
	"strconv"

	"trunkline/event"
)

// KnownAgent has the facts that are known of an agent. It is immutable.
type KnownAgent struct {
	Presence event.State    `json:"presence,omitempty"` // whether it is at work: available, break, offline or other
	Reason   string         `json:"reason,omitempty"`   // of the presence
	Activity event.Activity `json:"activity,omitempty"` // what it does, as it was reported last; "": nothing
	Device   event.Device   `json:"device,omitempty"`   // its phone
	// its memberships, by queue; of platforms that report more than the queue
	Members []Member    `json:"members,omitempty"`
	Calls   []AgentCall `json:"calls,omitempty"` // its calls, those that it had first in front
	// the agent of which this is another id; nothing else is known of it then
	SameAs string `json:"same_as,omitempty"`
}

// Member is what is known of an agent's membership in a queue.
type Member struct {
	QueueID       string `json:"queue_id"`
	InCall        bool   `json:"in_call,omitempty"` // a call of the queue is connected
	Paused        bool   `json:"paused,omitempty"`
	Reason        string `json:"reason,omitempty"`           // of the pause
	PausedSince   int64  `json:"paused_since,omitempty"`     // Unix seconds
	WrapUpUntilMS int64  `json:"wrap_up_until_ms,omitempty"` // Unix milliseconds
}

// AgentCall is a call of an agent.
type AgentCall struct {
	ID      string `json:"id"`
	Ringing bool   `json:"ringing,omitempty"` // false: the agent talks on it
}

// shownState is the state that follows from what is known of an agent.
type shownState struct {
	state  event.State // "": nothing is known
	reason string
	after  event.State // the state after its calls; "": available
}

// combine is the one rule for the state of an agent, whatever the order in which its
// facts became known: a call precedes everything; then whether it is at work; then
// what keeps it from getting calls. now is Unix milliseconds.
func (k *KnownAgent) combine(now int64) shownState {
	busy := k.busyState()
	free, reason := k.stateWithoutCall(now)
	if busy == "" {
		return shownState{state: free, reason: reason}
	}

	s := shownState{state: busy}
	if free != event.Available && free != event.WrapUp {
		s.after = free
	}

	return s
}

// busyState returns the state for what the agent does: ringing, talking or wrap_up, "" if
// it does nothing of these.
func (k *KnownAgent) busyState() event.State {
	inCall := func(m Member) bool { return m.InCall }
	talks := func(c AgentCall) bool { return !c.Ringing }

	// A queue may still count a call that the phone has ended, so an idle phone overrules it.
	switch {
	case slices.ContainsFunc(k.Calls, talks), k.Device == event.DeviceInUse, k.Activity == event.ActivityTalking,
		k.Device != event.DeviceIdle && slices.ContainsFunc(k.Members, inCall):
		return event.Talking
	case len(k.Calls) > 0, k.Device == event.DeviceRinging, k.Activity == event.ActivityRinging:
		return event.Ringing
	case k.Device == event.DeviceWrapUp, k.Activity == event.ActivityWrapUp:
		return event.WrapUp
	}

	return ""
}

// stateWithoutCall returns the state of an agent that does nothing at the moment, and its reason. now is Unix
// milliseconds.
func (k *KnownAgent) stateWithoutCall(now int64) (s event.State, reason string) {
	switch k.Presence {
	case event.Offline, event.Break:
		return k.Presence, k.Reason
	}

	pause := k.pausedEverywhere()
	if pause != nil {
		return event.Break, pause.Reason
	}
	if slices.ContainsFunc(k.Members, func(m Member) bool { return m.WrapUpUntilMS > now }) {
		return event.WrapUp, ""
	}

	switch {
	case k.Presence == event.OtherState:
		return event.OtherState, k.Reason
	case k.Activity == event.ActivityNotReady:
		return event.OtherState, string(k.Activity)
	case k.Device == event.DeviceBusy, k.Device == event.DeviceUnreachable:
		return event.OtherState, string(k.Device)
	case k.Presence == "" && k.Device == "" && len(k.Members) == 0:
		return "", ""
	}

	return event.Available, k.Reason
}

// pausedEverywhere returns the pause that began last, if the agent is paused in each
// queue in which it is a member; otherwise nil.
func (k *KnownAgent) pausedEverywhere() (last *Member) {
	for i := range k.Members {
		m := &k.Members[i]
		if !m.Paused {
			return nil
		}
		if last == nil || m.PausedSince > last.PausedSince {
			last = m
		}
	}

	return last
}

// InQueue returns the state in which an agent counts in one of its queues: as shown,
// but on a break where it is paused.
func (e *Entry) InQueue(queue string) event.State {
	m := e.Member(queue)
	if m != nil && m.Paused && !onCall(e.State) {
		return event.Break
	}
	return e.State
}

// Member returns what is known of the agent's membership in a queue; nil: nothing but
// that it is a member.
func (e *Entry) Member(queue string) *Member {
	if e.KnownAgent == nil {
		return nil
	}
	if at, ok := e.KnownAgent.memberIndex(queue); ok {
		return &e.KnownAgent.Members[at]
	}
	return nil
}

// memberIndex returns the index in Members of a membership, or where it would be inserted.
func (k *KnownAgent) memberIndex(queue string) (at int, ok bool) {
	return slices.BinarySearchFunc(k.Members, queue, func(m Member, queue string) int {
		switch {
		case m.QueueID < queue:
			return -1
		case m.QueueID > queue:
			return 1
		}
		return 0
	})
}

// WhatIsKnown returns a copy of what is known of an agent, for an event to change; e may
// be nil. Of an entry without KnownAgent, which a server before facts were held side by side
// wrote, it is derived from the shown state.
func (e *Entry) WhatIsKnown() KnownAgent {
	switch {
	case e == nil:
		return KnownAgent{}
	case e.KnownAgent != nil:
		return *e.KnownAgent
	}

	k := KnownAgent{Reason: e.Reason}
	switch {
	case agentOnly(e.State) && e.State != event.WrapUp:
		k.Presence = e.State
	case e.AfterCall != "":
		k.Presence = e.AfterCall
	case e.State != "":
		k.Presence = event.Available
	}

	switch {
	case e.CallID != "":
		k.Calls = []AgentCall{{ID: e.CallID, Ringing: e.State == event.Ringing}}
	case e.State == event.Ringing, e.State == event.Talking:
		k.Activity = event.Activity(e.State)
	}

	if e.State == event.WrapUp {
		k.Activity = event.ActivityWrapUp
	}

	return k
}

// setCall adds a call, or changes whether it rings. That ends a wrap-up that was
// reported.
func (k *KnownAgent) setCall(id string, ringing bool) {
	if k.Activity == event.ActivityWrapUp || k.Activity == event.ActivityNotReady {
		k.Activity = ""
	}

	for i, c := range k.Calls {
		if c.ID != id {
			continue
		}
		if c.Ringing != ringing {
			k.Calls = slices.Clone(k.Calls)
			k.Calls[i].Ringing = ringing
		}

		return
	}

	if len(k.Calls) < maxCalls {
		// Not append, which may write to memory that an entry has too.
		calls := make([]AgentCall, len(k.Calls)+1)
		copy(calls, k.Calls)
		calls[len(k.Calls)] = AgentCall{id, ringing}
		k.Calls = calls
	}
}

// dropCall removes a call. With its last call an agent neither rings nor talks, unless
// its phone does.
func (k *KnownAgent) dropCall(id string) {
	at := slices.IndexFunc(k.Calls, func(c AgentCall) bool { return c.ID == id })
	switch {
	case at < 0:
	case len(k.Calls) == 1:
		k.Calls = nil
	default:
		k.Calls = slices.Delete(slices.Clone(k.Calls), at, at+1)
	}

	if len(k.Calls) == 0 {
		if k.Activity == event.ActivityRinging || k.Activity == event.ActivityTalking {
			k.Activity = ""
		}
	}
}

// hasCall reports whether a call is one of the agent's.
func (k *KnownAgent) hasCall(id string) bool {
	return slices.ContainsFunc(k.Calls, func(c AgentCall) bool { return c.ID == id })
}

// setMember sets what is known of a membership.
func (k *KnownAgent) setMember(m Member) {
	at, ok := k.memberIndex(m.QueueID)
	switch {
	case ok && k.Members[at] == m:
	case ok:
		k.Members = slices.Clone(k.Members)
		k.Members[at] = m
	case len(k.Members) < maxQueues:
		k.Members = slices.Insert(slices.Clone(k.Members), at, m)
	}
}

// dropMember forgets a membership. In no queue, an agent's phone is no matter of ours.
func (k *KnownAgent) dropMember(queue string) {
	at, ok := k.memberIndex(queue)
	if !ok {
		return
	}
	k.Members = slices.Delete(slices.Clone(k.Members), at, at+1)
	if len(k.Members) == 0 {
		k.Members, k.Device = nil, ""
	}
}

// equal reports whether the same is known.
func (k *KnownAgent) equal(o *KnownAgent) bool {
	if k == o {
		return true
	}
	return k != nil && o != nil && k.Presence == o.Presence && k.Reason == o.Reason && k.Activity == o.Activity &&
		k.Device == o.Device && k.SameAs == o.SameAs &&
		slices.Equal(k.Members, o.Members) && slices.Equal(k.Calls, o.Calls)
}

// maxCalls bounds the calls of one agent.
const maxCalls = 16

// appendJSON appends what is known as a JSON object.
func (k *KnownAgent) appendJSON(dst []byte) []byte {
	o := objectWriter{dst: append(dst, '{')}
	o.text("presence", string(k.Presence))
	o.text("reason", k.Reason)
	o.text("activity", string(k.Activity))
	o.text("device", string(k.Device))

	if len(k.Members) > 0 {
		o.beginMember("members")
		for i := range k.Members {
			o.begin(i)
			m := &k.Members[i]
			o.text("queue_id", m.QueueID)
			o.flag("in_call", m.InCall)
			o.flag("paused", m.Paused)
			o.text("reason", m.Reason)
			o.number("paused_since", m.PausedSince)
			o.number("wrap_up_until_ms", m.WrapUpUntilMS)
			o.dst = append(o.dst, '}')
		}

		o.dst = append(o.dst, ']')
	}

	if len(k.Calls) > 0 {
		o.beginMember("calls")
		for i, c := range k.Calls {
			o.begin(i)
			o.text("id", c.ID)
			o.flag("ringing", c.Ringing)
			o.dst = append(o.dst, '}')
		}

		o.dst = append(o.dst, ']')
	}

	o.text("same_as", k.SameAs)
	return append(o.dst, '}')
}

// objectWriter writes the members of a JSON object, those that are set.
type objectWriter struct{ dst []byte }

// beginMember begins a member.
func (o *objectWriter) beginMember(key string) {
	if o.dst[len(o.dst)-1] != '{' {
		o.dst = append(o.dst, ',')
	}
	o.dst = append(append(append(o.dst, '"'), key...), `":`...)
}

// begin begins the object number i of an array.
func (o *objectWriter) begin(i int) {
	if i == 0 {
		o.dst = append(o.dst, '[', '{')
	} else {
		o.dst = append(o.dst, ',', '{')
	}
}

func (o *objectWriter) text(key, value string) {
	if value != "" {
		o.beginMember(key)
		o.dst = event.AppendString(o.dst, value)
	}
}

func (o *objectWriter) number(key string, n int64) {
	if n != 0 {
		o.beginMember(key)
		o.dst = strconv.AppendInt(o.dst, n, 10)
	}
}

func (o *objectWriter) flag(key string, set bool) {
	if set {
		o.beginMember(key)
		o.dst = append(o.dst, "true"...)
	}
}

// estimatedSize estimates the size of what is known as JSON: an upper bound, unless its
// texts need escapes. k may be nil.
func (k *KnownAgent) estimatedSize() int {
	const members, member, call = 115, 150, 30
	if k == nil {
		return 0
	}

	n := members + len(k.Reason) + len(k.SameAs)
	for i := range k.Members {
		n += member + len(k.Members[i].QueueID) + len(k.Members[i].Reason)
	}

	for i := range k.Calls {
		n += call + len(k.Calls[i].ID)
	}

	return n
}
