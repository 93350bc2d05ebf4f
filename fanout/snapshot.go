package fanout

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// Snapshot is the state after all events up to Cursor; see docs/channel.md.
type Snapshot struct {
	EventID   string `json:"event_id"` // of the newest event in it; "" when none is known
	Cursor    string `json:"cursor"`   // value of since that continues exactly after the snapshot
	Timestamp int64  `json:"timestamp"`
	// Unix seconds: earlier events are not included; absent: all are included
	StateSince int64           `json:"state_since,omitempty"`
	Agents     []SnapshotAgent `json:"agents"`
	Calls      []SnapshotCall  `json:"calls"`
	Queues     []SnapshotQueue `json:"queues"`
}

// SnapshotAgent is an agent that is logged in.
type SnapshotAgent struct {
	AccountID string      `json:"account_id"`
	AgentID   string      `json:"agent_id"`
	AgentName string      `json:"agent_name,omitempty"`
	State     event.State `json:"state"`
	Status    string      `json:"status"` // available or break
	Since     int64       `json:"since"`  // Unix seconds of the change to this state
	Queues    []string    `json:"queues,omitempty"`
	CallID    string      `json:"call_id,omitempty"`
	AfterCall event.State `json:"after_call,omitempty"` // state after the current call; absent: available
	Reason    string      `json:"reason,omitempty"`

	// Memberships are those of Queues in which the agent is paused or in wrap-up.
	Memberships []SnapshotMembership `json:"memberships,omitempty"`
}

// SnapshotMembership is an agent's membership in a queue.
type SnapshotMembership struct {
	QueueID     string      `json:"queue_id"`
	State       event.State `json:"state"` // in which the agent counts there
	Reason      string      `json:"reason,omitempty"`
	PausedSince int64       `json:"paused_since,omitempty"`  // Unix seconds
	WrapUpUntil int64       `json:"wrap_up_until,omitempty"` // Unix seconds
}

// SnapshotCall is a call that has not ended: a caller in a queue, or a leg.
type SnapshotCall struct {
	AccountID     string      `json:"account_id"`
	CallID        string      `json:"call_id"`
	InteractionID string      `json:"interaction_id,omitempty"`
	QueueID       string      `json:"queue_id"` // "" when the source names none
	AgentID       string      `json:"agent_id"` // "" while the call waits
	State         event.State `json:"state"`
	Since         int64       `json:"since"` // Unix seconds of the change to this state
	Caller        string      `json:"caller,omitempty"`
	Position      int         `json:"position,omitempty"` // in its queue, from 1; only while the call waits
}

// SnapshotQueue is a queue that has calls, members or figures of today.
type SnapshotQueue struct {
	AccountID string `json:"account_id"`
	QueueID   string `json:"queue_id"`
	Waiting   int    `json:"waiting"` // calls not answered by an agent
	// Unix seconds at which the first of them entered
	LongestWaitSince int64 `json:"longest_wait_since,omitempty"`
	// calls with an agent, including held ones
	Talking int                 `json:"talking"`
	Agents  map[event.State]int `json:"agents"` // its logged-in members, by state

	// Figures of today in the account's time zone (docs/figures.md).
	Offered            int64    `json:"offered,omitempty"`
	Answered           int64    `json:"answered,omitempty"`
	Abandoned          int64    `json:"abandoned,omitempty"`
	ServiceLevel       *float64 `json:"service_level,omitempty"` // nil: the denominator is zero
	ServiceLevelStrict *float64 `json:"service_level_strict,omitempty"`
}

const (
	// maxSnapshotAge bounds the time since a view last included the whole topic. It is
	// less than clockSkew, so that a resume by event_id replays all events missing in
	// the snapshot.
	maxSnapshotAge = 2 * time.Second
	// snapshotTimeout bounds the wait for the state to be read.
	snapshotTimeout = 5 * time.Second
)

// snapshots makes snapshots of accounts.
type snapshots struct {
	directory         Directory
	accountPartitions *accountPartitions
	logIdentity       *logIdentity
	states            *stateViews
	today             figuresToday
}

// Snapshot returns the agents, calls and queues of the principal's accounts that match
// its filter, regardless of event types and names. It returns fault.KindUnavailable
// while a partition is behind.
func (m *snapshots) Snapshot(ctx context.Context, p *identity.Principal) (*Snapshot, error) {
	filter := newFilter(p, m.directory)
	if filter == nil {
		return nil, fault.Forbidden("the token's accounts are not accessible any more")
	}

	merged := newMergedEntries()
	s, err := m.collect(ctx, filter, merged)
	if err != nil {
		return nil, err
	}

	s.fill(merged.live, filter)
	m.addToday(ctx, s, filter)
	return s, nil
}

// collect merges the state of a filter's accounts into merged, and returns a snapshot
// with its cursor.
func (m *snapshots) collect(ctx context.Context, filter *filter, merged *mergedEntries) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()

	if err := m.accountPartitions.awaitLoaded(ctx); err != nil {
		return nil, err
	}

	for {
		// Get the partitions before reading the state: partitions added later are not
		// in it.
		set, _ := m.accountPartitions.partitionsOf(filter, m.directory.Tree())
		views, partitions, err := m.states.viewsOf(ctx, set, time.Now())
		if err != nil {
			return nil, fault.Unavailable(err, time.Second, "the snapshot cannot be made, retry")
		}

		merged.reset()
		s := m.mergeViews(views, partitions, filter, time.Now(), merged)
		if s != nil {
			return s, nil
		}
		if !retry.Sleep(ctx, 10*time.Millisecond) {
			return nil, fault.Unavailable(behind(views, time.Now()), time.Second,
				"the snapshot is not complete yet, retry")
		}
	}
}

type queueKey struct{ account, queue string }

// fill adds the entries that match the filter, ordered by account and id.
func (s *Snapshot) fill(merged map[state.Key]*state.Entry, filter *filter) {
	s.Agents, s.Calls, s.Queues = []SnapshotAgent{}, []SnapshotCall{}, []SnapshotQueue{}
	queues := make(map[queueKey]*SnapshotQueue)
	queue := func(account, id string) *SnapshotQueue {
		q := queues[queueKey{account, id}]
		if q == nil {
			q = &SnapshotQueue{AccountID: account, QueueID: id, Agents: map[event.State]int{}}
			queues[queueKey{account, id}] = q
		}
		return q
	}

	entries := slices.SortedFunc(maps.Values(merged), compareEntries)
	for _, e := range entries {
		if !e.Live() {
			continue
		}

		switch e.Kind {
		case state.Agent:
			// A queue counts all its members, also those that the filter hides.
			for _, id := range e.Queues {
				queue(e.AccountID, id).Agents[e.InQueue(id)]++
			}
			if filter.matchesAgent(e) {
				s.Agents = append(s.Agents, newSnapshotAgent(e, s.Timestamp))
			}
		case state.Call:
			place := 0
			if e.IsLiveVisit() { // a leg of the same caller is not counted again
				place = queue(e.AccountID, e.QueueID).addCall(e)
			}
			if filter.calls.has(e.ID) && filter.agents.has(e.AgentID) && filter.queues.has(e.QueueID) &&
				filter.seesCall(e, merged) {
				s.Calls = append(s.Calls, newSnapshotCall(e, place))
			}
		}
	}

	for _, q := range queues {
		if filter.seesQueue(q.QueueID) {
			s.Queues = append(s.Queues, *q)
		}
	}

	slices.SortFunc(s.Calls, func(a, b SnapshotCall) int {
		return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.CallID, b.CallID))
	})
	slices.SortFunc(s.Queues, compareQueues)
}

// compareEntries orders by account and id, and calls by the time at which they entered
// their queue: of those that entered it in one millisecond, or that a comparison found to
// have entered it in one second, by the place that the platform told.
func compareEntries(a, b *state.Entry) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.EnteredMS, b.EnteredMS),
		cmp.Compare(a.Position, b.Position), cmp.Compare(a.ID, b.ID))
}

// addCall counts a call of the queue. It returns the call's position while it waits.
func (q *SnapshotQueue) addCall(e *state.Entry) (place int) {
	switch e.State {
	case event.Waiting, event.Ringing:
		q.Waiting++
		if q.LongestWaitSince == 0 {
			q.LongestWaitSince = e.EnteredMS / 1000
		}
		return q.Waiting
	case event.Talking, event.Held:
		q.Talking++
	}

	return 0
}

// seesCall reports whether a role sees a call: by its queue, or by an agent that has it or
// at whom it rings. entries has the agents.
func (f *filter) seesCall(e *state.Entry, entries map[state.Key]*state.Entry) bool {
	if f.visibility == nil {
		return true
	}

	for _, agent := range append([]string{e.AgentID}, e.Ringing...) {
		var memberOf string
		known := entries[state.Key{Account: e.AccountID, Kind: state.Agent, ID: agent}]
		if known != nil {
			memberOf = strings.Join(known.Queues, event.QueueSeparator)
		}
		if f.visibility.Admits(e.AccountID, agent, e.QueueID, memberOf) {
			return true
		}
	}

	return false
}

// matchesAgent reports whether an agent matches the filter's agents, queues and
// calls, and the role sees it.
func (f *filter) matchesAgent(e *state.Entry) bool {
	return f.agents.has(e.ID) && f.calls.has(e.CallID) &&
		(f.queues == nil || f.queues.has(e.QueueID) || slices.ContainsFunc(e.Queues, f.queues.has)) &&
		(f.visibility == nil ||
			f.visibility.Admits(e.AccountID, e.ID, "", strings.Join(e.Queues, event.QueueSeparator)))
}

func newSnapshotAgent(e *state.Entry, now int64) SnapshotAgent {
	a := SnapshotAgent{AccountID: e.AccountID, AgentID: e.ID, AgentName: e.AgentName, State: e.State,
		Status: string(event.Available),
		Since:  e.Since, Queues: e.Queues, CallID: e.CallID, AfterCall: e.AfterCall, Reason: e.Reason}

	if e.State == event.Break {
		a.Status = string(event.Break)
	}

	for _, id := range e.Queues {
		m := e.Member(id)
		if m == nil || !m.Paused && m.WrapUpUntilMS <= now*1000 {
			continue
		}

		shown := SnapshotMembership{QueueID: id, State: e.InQueue(id), Reason: m.Reason,
			WrapUpUntil: m.WrapUpUntilMS / 1000}
		if m.Paused {
			shown.PausedSince = m.PausedSince
		}

		a.Memberships = append(a.Memberships, shown)
	}

	return a
}

func newSnapshotCall(e *state.Entry, place int) SnapshotCall {
	return SnapshotCall{AccountID: e.AccountID, CallID: e.ID, InteractionID: e.InteractionID, QueueID: e.QueueID,
		AgentID: e.AgentID,
		State:   e.State, Since: e.Since, Caller: e.Caller, Position: place}
}
