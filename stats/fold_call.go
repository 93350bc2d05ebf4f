package stats

import (
	"unique"

	"trunkline/event"
	"trunkline/event/state"
)

// callFold folds the events of queues' calls: what they change of the calls, of the rows of their queues, and
// of the agents whose phones they stop ringing.
type callFold struct {
	table  *entryTable
	rows   *rows
	agents *agentFold
}

// callOf returns the queue's call to which an event belongs, nil: none. Events of
// the switch name one of the legs: then the interaction identifies the call.
func (f *callFold) callOf(e *state.Event) *call {
	facts := &e.Facts
	account := unique.Make(e.Account)
	if facts.CallID != "" {
		if c, ok := f.table.entries[key{account, unique.Make(facts.CallID), 0, kindOpenCall}].(*call); ok {
			return c
		}
	}

	switch facts.Name {
	case event.NameCallHeld, event.NameCallResumed, event.NameCallTransferred:
		if facts.InteractionID != "" {
			return f.table.calls.newest(interaction{account, unique.Make(facts.InteractionID)})
		}
	}

	return nil
}

// foldEvent updates the event's call, nil: none, and the figures of its queue.
func (f *callFold) foldEvent(e *state.Event, c *call, at int64) {
	facts := &e.Facts
	if c != nil && facts.QueueID != "" && facts.QueueID != c.Queue && isQueueCall(facts.Name) &&
		facts.Name != event.NameQueueCallEntered {
		// The current pass is in another queue: what a former queue says late is not about it.
		if c.EndedMS == 0 {
			return // late event of a queue that the call has left
		}
		c = nil
	}

	switch facts.Name {
	case event.NameQueueCallEntered:
		f.enterQueue(e, c, at)
		return
	case event.NameQueueCallAnswered, event.NameQueueCallAbandoned:
		if c == nil && facts.WaitMS.Known { // its entry was not reported, or is before the start of the log
			c = f.addCall(e, at-facts.WaitMS.Value)
		}
	}

	if c == nil {
		return
	}

	at = max(at, c.EnteredMS) // the source's clock was set back, or is wrong in this event
	switch facts.Name {
	case event.NameQueueCallOffered:
		if c.AnsweredMS == 0 && c.EndedMS == 0 && facts.AgentID != "" {
			c.Agent = emptyIfTooLong(facts.AgentID)
		}
	case event.NameQueueCallAnswered:
		f.answer(e, c, at)
	case event.NameQueueCallAbandoned:
		f.abandon(e, c, at)
	case event.NameQueueCallEnded:
		// The caller was told as gone, and talks: Asterisk says so of one whose time in the queue was over.
		if c.Abandoned && facts.State == event.Talking {
			f.leave(c)
		}
		f.finish(e, c, at)
	case event.NameCallEnded:
		// An agent that has passed the call on only ends its own part.
		if facts.AgentID == "" || c.Agent == "" || c.Agent == facts.AgentID {
			f.finish(e, c, at)
		}
	case event.NameCallHeld:
		if c.talking() && c.HoldStartMS == 0 {
			c.HoldStartMS = at
		}
	case event.NameCallResumed:
		f.resume(c, at)
	case event.NameCallTransferred:
		if c.AnsweredMS != 0 {
			f.transfer(c)
		}
	default:
		return
	}

	c.Seen = int64(e.ID)
	f.table.recordChange(c)
}

func isQueueCall(name event.Name) bool {
	switch name {
	case event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered,
		event.NameQueueCallAbandoned, event.NameQueueCallEnded:
		return true
	}
	return false
}

func (c *call) talking() bool { return c.AnsweredMS != 0 && c.EndedMS == 0 }

// row returns the row that counts the call, nil if the row accepts no more events.
func (f *callFold) row(c *call) *QueueRow {
	r := f.rows.ofQueue(c.key.account, unique.Make(c.Queue), f.table.intervals.startOf(c.EnteredMS))
	if r == nil {
		f.rows.ignored++
	}
	return r
}

// enterQueue begins a pass of a call through a queue, unless the event repeats the start of
// the current one. c is the previous pass, nil: none.
func (f *callFold) enterQueue(e *state.Event, c *call, at int64) {
	queue := e.Facts.QueueID
	if queue == "" || len(queue) > maxTextBytes || e.Facts.CallID == "" || len(e.Facts.CallID) > maxTextBytes {
		return
	}

	if c != nil && c.Queue == queue {
		// A caller who is sent back enters in the millisecond in which the former pass ends.
		if c.AnsweredMS == 0 && c.EndedMS == 0 || at <= max(c.EnteredMS, c.AnsweredMS) || at < c.EndedMS {
			return
		}
	}

	// The end of the former pass was not reported: this event is its end.
	if c != nil && c.EndedMS == 0 {
		f.finish(e, c, at)
		if c.Queue != queue {
			f.transfer(c)
		}
	}

	if c == nil && e.Facts.InteractionID != "" {
		// mod_callcenter has a new id for each queue, and ends the visit to the former
		// one afterwards.
		before := f.table.calls.newest(interaction{unique.Make(e.Account), unique.Make(e.Facts.InteractionID)})
		if before != nil && before.Queue != queue && before.talking() {
			f.transfer(before)
		}
	}

	f.addCall(e, at)
}

// addCall creates the entry of a call that entered its queue at entered, and counts it
// as offered. It returns nil if the event names no queue or call, if the interval
// accepts no more events, or if the account may have no more calls.
func (f *callFold) addCall(e *state.Event, entered int64) *call {
	facts := &e.Facts
	if facts.QueueID == "" || len(facts.QueueID) > maxTextBytes || facts.CallID == "" ||
		len(facts.CallID) > maxTextBytes {
		return nil
	}

	c := &call{header: header{key: newKey(kindOpenCall, e.Account, facts.CallID, 0)},
		Queue: unique.Make(facts.QueueID).Value(), Interaction: emptyIfTooLong(facts.InteractionID),
		Caller: emptyIfTooLong(facts.Caller), EnteredMS: entered, Seen: int64(e.ID)}
	before, again := f.table.entries[c.key]
	if !again && f.rows.isFull(c.key) {
		f.rows.ignored++
		return nil
	}

	r := f.row(c)
	if r == nil {
		return nil
	}

	r.Offered++
	if again {
		f.table.remove(before)
	}

	f.table.add(c)
	return c
}

// waitMS returns how long a call had waited at the time at.
func (c *call) waitMS(facts *event.Facts, at int64) int64 {
	if facts.WaitMS.Known {
		return facts.WaitMS.Value
	}
	return max(0, at-c.EnteredMS)
}

func (f *callFold) answer(e *state.Event, c *call, at int64) {
	// Also of a call that has ended: its end may be received before its answer.
	if c.EndedMS == 0 || c.AnsweredMS == 0 {
		// The platform says nothing of the other's phone when this one answers.
		if c.Agent != "" && c.Agent != e.Facts.AgentID {
			f.agents.stopRinging(e, c.Agent, at)
		}
		if e.Facts.AgentID != "" {
			c.Agent = emptyIfTooLong(e.Facts.AgentID)
		}
	}

	if c.AnsweredMS != 0 || c.Abandoned {
		return
	}

	c.AnsweredMS = at
	r := f.row(c)
	if r == nil {
		return
	}

	wait := c.waitMS(&e.Facts, at)
	r.Answered++
	r.WaitMS += wait
	r.WaitMSMax = max(r.WaitMSMax, wait)

	if wait <= r.ServiceLevelSeconds*1000 {
		r.AnsweredWithin++
	}
	if c.EndedMS != 0 { // its end was received first
		r.TalkMS += max(0, c.EndedMS-at)
	}
}

func (f *callFold) abandon(e *state.Event, c *call, at int64) {
	if c.AnsweredMS != 0 || c.Abandoned {
		f.finish(e, c, at)
		return
	}

	c.Abandoned, c.TakenBack = true, false
	if c.EndedMS == 0 {
		c.EndedMS = at
	}

	r := f.row(c)
	if r == nil {
		return
	}

	wait := c.waitMS(&e.Facts, c.EndedMS)
	c.WaitedMS = wait
	r.Abandoned++
	r.AbandonWaitMS += wait
	r.WaitMSMax = max(r.WaitMSMax, wait)

	if wait <= r.ShortAbandonSeconds*1000 {
		c.Short = true
		r.AbandonedShort++
	}
}

// leave takes back that a caller hung up: the queue's time was over, or nobody was there to answer,
// and the call goes on. Asterisk tells that it was abandoned first. wait_ms_max keeps its wait.
func (f *callFold) leave(c *call) {
	c.Abandoned, c.Short, c.TakenBack = false, false, true
	r := f.row(c)
	if r == nil {
		return
	}

	r.Abandoned--
	r.AbandonWaitMS -= c.WaitedMS
	if c.WaitedMS <= r.ShortAbandonSeconds*1000 {
		r.AbandonedShort--
	}

	c.WaitedMS = 0
}

// finish ends a call that has not ended, and counts its talking time.
func (f *callFold) finish(e *state.Event, c *call, at int64) {
	if c.EndedMS != 0 {
		return
	}

	// A hold lasts until the end at most: no event ends it later.
	f.resume(c, at)
	c.EndedMS = at
	f.table.recordChange(c)

	if c.AnsweredMS == 0 {
		return
	}

	talk := max(0, at-c.AnsweredMS)
	// The facts of an entry are of the new pass.
	if e.Facts.TalkMS.Known && e.Facts.Name != event.NameQueueCallEntered {
		talk = e.Facts.TalkMS.Value
	}

	r := f.row(c)
	if r != nil {
		r.TalkMS += talk
	}
}

// resume ends a hold.
func (f *callFold) resume(c *call, at int64) {
	if c.HoldStartMS == 0 {
		return
	}
	r := f.row(c)
	if r != nil {
		r.HoldMS += max(0, at-c.HoldStartMS)
	}
	c.HoldStartMS = 0
}

// transfer counts once that a call was transferred from its queue.
func (f *callFold) transfer(c *call) {
	if c.Transferred {
		return
	}
	c.Transferred = true
	r := f.row(c)
	if r != nil {
		r.Transferred++
	}
	f.table.recordChange(c)
}
