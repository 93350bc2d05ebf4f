package freeswitch

import (
	"context"
	"strings"
)

// refreshAgents queries the queues of the agents. A switch without the command has none. The caller has locked
// accountCache.askingForAgents.
func (s *session) refreshAgents(ctx context.Context) error {
	_, _, err := s.queryAgents(ctx)
	if isRefusal(err) {
		s.accountCache.setAgents(nil)
		return nil
	}
	return err
}

// queryAgents queries the agents and their tiers, and caches the names that may map the agents to accounts. The caller
// has locked accountCache.askingForAgents.
func (s *session) queryAgents(ctx context.Context) (agents, tiers table, err error) {
	agents, err = s.queryTable(ctx, "callcenter_config agent list", "contact")
	if err == nil {
		tiers, err = s.queryTable(ctx, "callcenter_config tier list", "")
	}
	if err == nil {
		s.accountCache.setAgents(agentAccountNames(agents, tiers))
	}
	return agents, tiers, err
}

// agentAccountNames returns the names that may map to an account, by agent: the domain of
// its own name and of its queues, that of its contact, and its queues.
func agentAccountNames(agents, tiers table) map[string][]string {
	queues := queuesOf(tiers)
	all := make(map[string][]string, len(agents.rows))
	for _, row := range agents.rows {
		agent := agents.get(row, "name")
		names := []string{domainOf(agent)}
		for _, queue := range queues[agent] {
			names = append(names, domainOf(queue))
		}

		names = append(names, contactDomain(agents.get(row, "contact")))
		names = append(names, queues[agent]...)
		var kept []string

		for _, name := range names {
			if name != "" {
				kept = addOnce(kept, name)
			}
		}

		all[agent] = kept
	}

	return all
}

// queuesOf returns each agent's queues in the order of the tiers.
func queuesOf(tiers table) map[string][]string {
	queues := make(map[string][]string)
	for _, row := range tiers.rows {
		agent, queue := tiers.get(row, "agent"), tiers.get(row, "queue")
		if agent != "" && queue != "" {
			queues[agent] = addOnce(queues[agent], queue)
		}
	}
	return queues
}

// contactDomain returns the domain of a dial string: that of its variable domain_name, else that of its
// first user.
func contactDomain(contact string) string {
	for _, mark := range [...]string{"domain_name=", "user/"} {
		_, rest, found := strings.Cut(contact, mark)
		if !found {
			continue
		}

		end := strings.IndexAny(rest, ",|:]}> ")
		if end >= 0 {
			rest = rest[:end]
		}
		if mark == "user/" {
			rest = domainOf(rest)
		}
		if rest != "" {
			return rest
		}
	}

	return ""
}

// domainOf returns the part of a name after its last @, "" without one.
func domainOf(name string) string {
	i := strings.LastIndexByte(name, '@')
	if i >= 0 {
		return name[i+1:]
	}
	return ""
}
