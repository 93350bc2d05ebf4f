package callcenter

import "fmt"

// choice is a possible next event with its weight.
type choice struct {
	weight int
	apply  func()
}

// applyRandomEvent applies one of the possible events, chosen by weight.
func (c *Center) applyRandomEvent() {
	var choices []choice
	addChoice := func(weight int, do func()) { choices = append(choices, choice{weight, do}) }
	for _, q := range c.queues {
		if len(q.waiting) < 3 {
			addChoice(4, func() { c.enqueueCall(q) })
		}
		if len(q.waiting) > 0 {
			addChoice(1, func() { c.abandon(q) })
		}
	}

	for _, a := range c.agents {
		c.addAgentChoices(a, addChoice)
	}

	total := 0
	for _, choice := range choices {
		total += choice.weight
	}

	n := c.random.IntN(total) // never 0: a queue is always open
	for _, choice := range choices {
		n -= choice.weight
		if n < 0 {
			choice.apply()
			return
		}
	}
}

// addAgentChoices appends the possible events of an agent.
func (c *Center) addAgentChoices(a *agent, addChoice func(weight int, do func())) {
	switch a.state {
	case loggedOut:
		addChoice(6, func() { c.login(a) })
	case idle:
		if len(a.queue.waiting) > 0 {
			addChoice(20, func() { c.offer(a) })
		}

		addChoice(1, func() { c.pause(a) })
		if a.handled > 12 {
			addChoice(1, func() { c.logout(a) })
		}

	case ringing:
		addChoice(18, func() { c.answer(a) })
		addChoice(2, func() { c.miss(a) })

	case onCall:
		addChoice(5, func() { c.end(a) })
		other := c.findIdleAgent(a)
		if other != nil {
			addChoice(1, func() { c.transfer(a, other) })
		}

	case wrapUp:
		addChoice(8, func() { c.setState(a, idle) })
	case onBreak:
		addChoice(3, func() { c.resume(a) })
	}
}

// findIdleAgent returns another idle agent of the same queue, nil if there is none.
func (c *Center) findIdleAgent(a *agent) *agent {
	for _, other := range c.agents {
		if other != a && other.queue == a.queue && other.state == idle {
			return other
		}
	}
	return nil
}

func (c *Center) setState(a *agent, s state) {
	a.state = s
	a.queue.dialect.emitState(c, a)
}

func (c *Center) login(a *agent) {
	a.handled = 0
	a.queue.dialect.emitStatus(c, a, arrives)
	c.setState(a, idle)
}

func (c *Center) logout(a *agent) {
	a.state = loggedOut
	a.queue.dialect.emitStatus(c, a, leaves)
}

func (c *Center) pause(a *agent) {
	a.state = onBreak
	a.queue.dialect.emitStatus(c, a, pauses)
}

func (c *Center) resume(a *agent) {
	a.queue.dialect.emitStatus(c, a, resumes)
	c.setState(a, idle)
}

var callers = []string{"Noor", "Mateo", "Ingrid", "Kwame", "Yuki", "Farah", "Luca", "Sofia", "Tomas", "Zoe"}

func (c *Center) enqueueCall(q *queue) {
	c.members++
	k := &call{
		id: c.uuid(), bridgeID: c.uuid(), conferenceID: c.uuid(), customerLegID: c.uuid(), queue: q,
		memberNumber: c.members,
		callerName:   callers[c.random.IntN(len(callers))],
		callerNumber: fmt.Sprintf("+1202555%04d", 100+c.random.IntN(100)), // numbers reserved for fiction
		joinedAt:     c.now,
	}
	q.waiting = append(q.waiting, k)
	c.addStep(k, nil, entered)
}

func (c *Center) abandon(q *queue) {
	k := q.waiting[len(q.waiting)-1]
	q.waiting = q.waiting[:len(q.waiting)-1]
	c.addStep(k, nil, abandoned)
}

func (c *Center) offer(a *agent) {
	a.call = a.queue.waiting[0]
	a.queue.waiting = a.queue.waiting[1:]
	a.call.offeredAt = c.now
	c.setState(a, ringing)
	c.addStep(a.call, a, offered)
}

func (c *Center) answer(a *agent) {
	a.call.answeredAt = c.now
	c.addStep(a.call, a, answered)
	c.setState(a, onCall)
}

func (c *Center) miss(a *agent) {
	k := a.call
	a.call = nil
	c.addStep(k, a, missed)
	a.queue.waiting = append([]*call{k}, a.queue.waiting...)
	c.setState(a, idle)
}

func (c *Center) transfer(a, to *agent) {
	k := a.call
	a.call, to.call = nil, k
	c.addStep(k, to, transferred)
	a.queue.dialect.emitTransfer(c, a, to, k)
	c.setState(a, wrapUp)
	c.setState(to, onCall)
}

func (c *Center) end(a *agent) {
	k := a.call
	a.call = nil
	a.handled++
	c.addStep(k, a, ended)
	c.setState(a, wrapUp)
}

// addStep adds a step to a call's history and emits its event. The agent may be nil.
func (c *Center) addStep(k *call, a *agent, step callStep) {
	entry := historyEntry{Type: "queue", Ext: k.queue.id, Event: string(step)}
	if a != nil {
		entry = historyEntry{"agent", a.ext, string(step), a.email(), a.first, a.last}
	}
	k.history = append(k.history, entry)
	k.queue.dialect.emitCall(c, k, a, step)
}
