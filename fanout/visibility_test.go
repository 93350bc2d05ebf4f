package fanout

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// seer is a user with a role, and what it has seen.
type seer struct {
	name, account, extension string
	role                     identity.Role
	identity.Limits

	token string
	live  *testClient
	wants []string // ids of events
}

// sees reports whether, by the contract, the role sees an event with an agent and a queue ("" for none);
// memberships has the queues of agents, by account and agent.
func (s *seer) sees(account, agent, queue string, memberships map[string][]string) bool {
	below := map[string][]string{"root": {"root", "shop", "kiosk"}, "shop": {"shop", "kiosk"}}
	if !slices.Contains(below[s.account], account) {
		return false
	}

	own := func(q string) bool { return slices.Contains(s.QueueIDs, q) }
	switch s.role {
	case identity.RoleAdmin, identity.RoleUser:
		return true
	case identity.RoleSupervisor:
		if len(s.QueueIDs) == 0 {
			return agent != "" || queue != ""
		}
		return own(queue) || slices.ContainsFunc(memberships[account+" "+agent], own)
	case identity.RoleAgent:
		if len(s.AgentIDs) == 0 {
			return agent != "" && account == s.account && strings.Contains(agent, s.extension)
		}
		return slices.Contains(s.AgentIDs, agent)
	}

	return false
}

// What a role sees is what an administrator sees, filtered: live, in a replay with cursors, in an event stream and
// in a snapshot; and explain says so of what it does not see. Calls, members and roles are random; sees is the filter.
func TestWhatARoleSeesIsTheAdministratorsViewFiltered(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { compareSights(t, rand.New(rand.NewPCG(seed, 39))) })
	}
}

func compareSights(t *testing.T, random *rand.Rand) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	log.normalizes()
	agents := []string{"1001@pbx", "PJSIP/1002", "1003", "Local/1004@agents/n"}
	queues := []string{"sales", "support", "pbx"}
	accounts := []string{"root", "shop", "kiosk", "other"}

	some := func(ids []string) []string {
		ids = slices.Clone(ids)
		random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		return ids[:1+random.IntN(2)]
	}

	seers := []*seer{{name: "admin", account: "root", role: identity.RoleAdmin},
		{name: "head", account: "root", role: identity.RoleSupervisor},
		{name: "extension", account: "shop", extension: "100" + fmt.Sprint(1+random.IntN(4)), role: identity.RoleAgent},
		{name: "user", account: "shop", role: identity.RoleUser}}

	for i := range 4 {
		account := accounts[random.IntN(2)]
		seers = append(seers, &seer{name: fmt.Sprint("supervisor ", i), account: account, role: identity.RoleSupervisor,
			Limits: identity.Limits{QueueIDs: some(queues)}},
			&seer{name: fmt.Sprint("agent ", i), account: account, role: identity.RoleAgent,
				Limits: identity.Limits{AgentIDs: some(agents)}})
	}

	for _, s := range seers {
		s.token = directory.user(s.name, s.account, identity.Filter{})
		directory.edit(func() {
			directory.visibilities[s.token] = identity.NewVisibility(s.role, s.account, s.extension,
				s.Limits)
		})
		s.live = n.dial(t, s.token, "")
	}

	memberships := map[string][]string{}
	var events []happening
	happen := func(e happening) {
		e.source, e.at = int64(len(events)), time.Now()
		events = append(events, e)
		key := e.account + " " + e.facts.AgentID

		switch e.facts.Name {
		case event.NameAgentQueueJoin:
			memberships[key] = append(memberships[key], e.facts.QueueID)
		case event.NameAgentQueueLeave:
			memberships[key] = slices.DeleteFunc(memberships[key], func(q string) bool { return q == e.facts.QueueID })
		}

		id, facts := log.appendHappening(e)
		for _, s := range seers {
			if s.sees(e.account, facts.AgentID, facts.QueueID, memberships) {
				s.wants = append(s.wants, id.String())
			}
		}
	}

	one := func(ids []string) string { return ids[random.IntN(len(ids))] }
	for _, account := range accounts {
		for _, agent := range agents {
			happen(happening{account: account, typ: event.AgentLogin,
				facts: event.Facts{Name: event.NameAgentLogin, AgentID: agent, State: event.Available}})
		}
	}

	for i := range 120 {
		e := happening{account: one(accounts), typ: event.QueueCall, facts: event.Facts{State: event.Talking,
			CallID: fmt.Sprint("call-", i), QueueID: one(append(queues, "")), AgentID: one(append(agents, ""))}}
		e.facts.Name = event.NameCallAnswered

		switch {
		case random.IntN(2) == 0:
			e.typ = event.AgentLogin
			e.facts = event.Facts{Name: event.NameAgentQueueJoin, AgentID: one(agents), QueueID: one(queues)}
			if slices.Contains(memberships[e.account+" "+e.facts.AgentID], e.facts.QueueID) {
				e.facts.Name = event.NameAgentQueueLeave
			}
		case e.facts.QueueID != "":
			e.facts.Name = event.NameQueueCallAnswered
		case e.facts.AgentID == "" && random.IntN(2) == 0:
			e.facts = event.Facts{Name: event.NameOther}
		}

		happen(e)
	}

	whole := n.complete(t, directory.tokens[seers[0].token], log)
	for _, s := range seers {
		if got := n.idsFrom(t, s, "live", len(s.wants)); !slices.Equal(got, s.wants) {
			t.Errorf("%s (%+v) saw live %q, want %q", s.name, s.Limits, got, s.wants)
		}

		for _, way := range []string{"replay", "stream"} {
			if got := n.idsFrom(t, s, way, len(s.wants)); !slices.Equal(got, s.wants) {
				t.Errorf("%s (%+v) saw by %s %q, want %q", s.name, s.Limits, way, got, s.wants)
			}
		}

		want, got := whole.of(s, memberships), n.complete(t, directory.tokens[s.token], log)
		if text(t, got.Agents) != text(t, want.Agents) || text(t, got.Calls) != text(t, want.Calls) ||
			text(t, got.Queues) != text(t, want.Queues) {
			t.Errorf("%s (%+v) saw in its snapshot %s, want %s", s.name, s.Limits, text(t, got), text(t, want))
		}

		seesAll := s.role == identity.RoleAdmin || s.role == identity.RoleUser
		if clients := n.Stats(t.Context(), directory.tokens[s.token]); len(clients) > 0 != seesAll {
			t.Errorf("%s is shown %d connections", s.name, len(clients))
		}
	}

	for _, id := range seers[0].wants {
		id, err := event.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}

		outcomes := n.eventOutcomes(t, log, id)
		for _, s := range seers {
			outcome, named := outcomes[s.name]
			seen := slices.Contains(s.wants, id.String())
			if !named || seen == (outcome == OutcomeFiltered || outcome == OutcomeNotVisible) {
				t.Errorf("of %s explain says %q at %s, who sees it: %t", id, outcome, s.name, seen)
			}
		}
	}
}

// of is an administrator's snapshot as a role sees it.
func (whole *Snapshot) of(s *seer, memberships map[string][]string) *Snapshot {
	seen := &Snapshot{Agents: []SnapshotAgent{}, Calls: []SnapshotCall{}, Queues: []SnapshotQueue{}}
	for _, a := range whole.Agents {
		if s.sees(a.AccountID, a.AgentID, "", memberships) {
			seen.Agents = append(seen.Agents, a)
		}
	}

	for _, c := range whole.Calls {
		if s.sees(c.AccountID, c.AgentID, c.QueueID, memberships) {
			seen.Calls = append(seen.Calls, c)
		}
	}

	for _, q := range whole.Queues {
		if s.role != identity.RoleAgent && s.sees(q.AccountID, "", q.QueueID, memberships) {
			seen.Queues = append(seen.Queues, q)
		}
	}

	return seen
}

// idsFrom returns the ids of the next events that somebody sees.
func (n *node) idsFrom(t *testing.T, s *seer, way string, count int) (ids []string) {
	t.Helper()
	client := s.live
	switch {
	case count == 0:
		return nil
	case way == "replay":
		client = n.dial(t, s.token, "since=earliest&cursor=true")
	case way == "stream":
		return n.streamedIDs(t, s.token)
	}

	for len(ids) < count {
		if m := client.next(); m["cursor"] == nil {
			ids = append(ids, m["id"].(string))
		}
	}

	return ids
}

// streamedIDs returns the ids of the events of the past.
func (n *node) streamedIDs(t *testing.T, token string) (ids []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		n.url+"/stream?since=earliest&until=now&token="+token, nil)
	if err != nil {
		t.Fatal(err)
	}

	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()

	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var m struct{ ID string }
		if ok && json.Unmarshal([]byte(data), &m) == nil && m.ID != "" {
			ids = append(ids, m.ID)
		}
	}

	return ids
}
