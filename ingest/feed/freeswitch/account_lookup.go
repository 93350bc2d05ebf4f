package freeswitch

import (
	"context"
	"sync"
	"time"

	"trunkline/format/freeswitch"
)

// maxLegs is the largest number of cached legs. A session that reaches it has missed the ends of many
// legs, and clears the cache.
const maxLegs = 100_000

// accountCache caches the names of agents and the accounts of legs, for events that name no account.
type accountCache struct {
	askingForAgents sync.Mutex // held while the agents are queried; guards agentsAskedAt
	agentsAskedAt   time.Time  // end of the last query

	mu     sync.Mutex
	agents map[string][]string // names that may map to an account, by agent
	legs   map[string]legInfo  // by uuid
}

// legInfo has the account and the interaction id from a leg's events.
type legInfo struct{ account, interaction string }

// agentAccountNames returns the names of an agent's tiers and contact.
func (c *accountCache) agentAccountNames(agent string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	names, ok := c.agents[agent]
	return names, ok
}

func (c *accountCache) setAgents(agents map[string][]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents = agents
}

// askForAgents calls ask, which queries the agents, once the query under way has ended.
func (c *accountCache) askForAgents(ask func() error) error {
	c.askingForAgents.Lock()
	defer c.askingForAgents.Unlock()
	return c.askForAgentsLocked(ask)
}

// tryAskForAgents calls ask, which queries the agents, unless a query is under way or the last one ended less than
// pause ago, and reports whether it did.
func (c *accountCache) tryAskForAgents(pause time.Duration, ask func() error) (asked bool, err error) {
	if !c.askingForAgents.TryLock() {
		return false, nil
	}
	defer c.askingForAgents.Unlock()

	if time.Since(c.agentsAskedAt) < pause {
		return false, nil
	}

	return true, c.askForAgentsLocked(ask)
}

// askForAgentsLocked is askForAgents for a caller that has locked askingForAgents.
func (c *accountCache) askForAgentsLocked(ask func() error) error {
	// Also of a query that fails, and at its end: a switch that hangs is not asked again at once.
	defer func() { c.agentsAskedAt = time.Now() }()
	return ask()
}

func (c *accountCache) leg(uuid string) legInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.legs[uuid]
}

func (c *accountCache) setLeg(uuid string, l legInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.legs) >= maxLegs || c.legs == nil {
		c.legs = make(map[string]legInfo)
	}
	c.legs[uuid] = l
}

func (c *accountCache) deleteLeg(uuid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.legs, uuid)
}

// account returns the account of an event or, if there is none, the names that were looked up.
func (s *session) account(ctx context.Context, e *freeswitch.LiveEvent) (account string, names []string) {
	account, names = s.accountByNames(ctx, e)
	if account == "" {
		account = e.Account
	}

	// The leg itself before those that it belongs to.
	for _, uuid := range [...]string{e.Channels[0], e.Channels[1], e.Session, e.Channels[2]} {
		if account == "" && uuid != "" {
			account = s.accountCache.leg(uuid).account
		}
	}

	switch own := e.Channels[0]; {
	case own == "":
	// The last event of a leg.
	case e.Name == "CHANNEL_DESTROY":
		s.accountCache.deleteLeg(own)
	case account != "" && e.Facts.CallID == own:
		s.accountCache.setLeg(own, legInfo{account, e.Facts.InteractionID})
	}

	if account != "" {
		return account, nil
	}

	return "", names
}

// accountByNames returns the account that the names of an event map to. For an event of an agent without a call
// it also uses the names of the agent's queues.
func (s *session) accountByNames(ctx context.Context, e *freeswitch.LiveEvent) (account string, names []string) {
	names = e.AccountNames
	agent := e.Facts.AgentID
	if agent == "" || e.Facts.QueueID != "" || e.Facts.CallID != "" {
		return s.accounts.Account(names...), names
	}

	queueNames, known := s.accountCache.agentAccountNames(agent)
	names = append(names, queueNames...)
	account = s.accounts.Account(names...)
	if account != "" || known || e.Format != callcenterFormat {
		return account, names
	}

	// An agent that was added since. No event waits for a snapshot's query, which may take commandTimeout.
	asked, err := s.accountCache.tryAskForAgents(s.refreshPause, func() error { return s.refreshAgents(ctx) })
	if err != nil { // the next Read returns the connection's error
		s.log.Warn("lookup of agents failed", "error", err)
	}
	if !asked || err != nil {
		return "", names
	}

	queueNames, _ = s.accountCache.agentAccountNames(agent)
	names = append(names, queueNames...)
	return s.accounts.Account(names...), names
}

// callcenterFormat is the name of the format of mod_callcenter's events.
const callcenterFormat = "freeswitch.callcenter"
