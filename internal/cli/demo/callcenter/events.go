package callcenter

import "fmt"

// choice is a possible next event with its weight.
type choice struct {
	weight int
	do     func()
}

// happen applies one of the possible events, chosen by weight.
func (c *Center) happen() {
	var choices []choice
	could := func(weight int, do func()) { choices = append(choices, choice{weight, do}) }
	for _, q := range c.queues {
		if len(q.waiting) < 3 {
			could(4, func() { c.enter(q) })
		}
		if len(q.waiting) > 0 {
			could(1, func() { c.abandon(q) })
		}
	}
	for _, a := range c.agents {
		c.couldDo(a, could)
	}
	total := 0
	for _, choice := range choices {
		total += choice.weight
	}
	n := c.random.IntN(total) // never 0: a queue is always open
	for _, choice := range choices {
		if n -= choice.weight; n < 0 {
			choice.do()
			return
		}
	}
}

// couldDo appends the possible events of an agent.
func (c *Center) couldDo(a *agent, could func(weight int, do func())) {
	switch a.state {
	case loggedOut:
		could(6, func() { c.login(a) })
	case idle:
		if len(a.queue.waiting) > 0 {
			could(20, func() { c.offer(a) })
		}
		could(1, func() { c.pause(a) })
		if a.handled > 12 {
			could(1, func() { c.logout(a) })
		}
	case ringing:
		could(18, func() { c.answer(a) })
		could(2, func() { c.miss(a) })
	case onCall:
		could(5, func() { c.end(a) })
		if other := c.free(a); other != nil {
			could(1, func() { c.transfer(a, other) })
		}
	case wrapUp:
		could(8, func() { c.become(a, idle) })
	case onBreak:
		could(3, func() { c.resume(a) })
	}
}

// free returns another idle agent of the same queue, nil if there is none.
func (c *Center) free(a *agent) *agent {
	for _, other := range c.agents {
		if other != a && other.queue == a.queue && other.state == idle {
			return other
		}
	}
	return nil
}

func (c *Center) become(a *agent, s state) {
	a.state = s
	a.queue.speaks.state(c, a)
}

func (c *Center) login(a *agent) {
	a.handled = 0
	a.queue.speaks.status(c, a, arrives)
	c.become(a, idle)
}

func (c *Center) logout(a *agent) {
	a.state = loggedOut
	a.queue.speaks.status(c, a, leaves)
}

func (c *Center) pause(a *agent) {
	a.state = onBreak
	a.queue.speaks.status(c, a, pauses)
}

func (c *Center) resume(a *agent) {
	a.queue.speaks.status(c, a, resumes)
	c.become(a, idle)
}

var callers = []string{"Noor", "Mateo", "Ingrid", "Kwame", "Yuki", "Farah", "Luca", "Sofia", "Tomas", "Zoe"}

func (c *Center) enter(q *queue) {
	c.members++
	k := &call{
		id: c.uuid(), bridge: c.uuid(), conference: c.uuid(), customer: c.uuid(), queue: q, member: c.members,
		name:   callers[c.random.IntN(len(callers))],
		number: fmt.Sprintf("+1202555%04d", 100+c.random.IntN(100)), // numbers reserved for fiction
		joined: c.now,
	}
	q.waiting = append(q.waiting, k)
	c.progress(k, nil, entered)
}

func (c *Center) abandon(q *queue) {
	k := q.waiting[len(q.waiting)-1]
	q.waiting = q.waiting[:len(q.waiting)-1]
	c.progress(k, nil, abandoned)
}

func (c *Center) offer(a *agent) {
	a.call = a.queue.waiting[0]
	a.queue.waiting = a.queue.waiting[1:]
	a.call.called = c.now
	c.become(a, ringing)
	c.progress(a.call, a, offered)
}

func (c *Center) answer(a *agent) {
	a.call.answered = c.now
	c.progress(a.call, a, answered)
	c.become(a, onCall)
}

func (c *Center) miss(a *agent) {
	k := a.call
	a.call = nil
	c.progress(k, a, missed)
	a.queue.waiting = append([]*call{k}, a.queue.waiting...)
	c.become(a, idle)
}

func (c *Center) transfer(a, to *agent) {
	k := a.call
	a.call, to.call = nil, k
	c.progress(k, to, transferred)
	a.queue.speaks.transferred(c, a, to, k)
	c.become(a, wrapUp)
	c.become(to, onCall)
}

func (c *Center) end(a *agent) {
	k := a.call
	a.call = nil
	a.handled++
	c.progress(k, a, ended)
	c.become(a, wrapUp)
}

// progress produces a step of a call; the agent may be nil.
func (c *Center) progress(k *call, a *agent, m moment) {
	s := step{Type: "queue", Ext: k.queue.id, Event: string(m)}
	if a != nil {
		s = step{"agent", a.ext, string(m), a.email(), a.first, a.last}
	}
	k.history = append(k.history, s)
	k.queue.speaks.call(c, k, a, m)
}
