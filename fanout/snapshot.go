package fanout

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/fanout/snapshot"
	"trunkline/identity"
	"trunkline/internal/fault"
)

// Snapshot is the state after all events up to Cursor; see docs/channel.md.
type Snapshot struct {
	EventID   string          `json:"event_id"` // of the newest event in it; "" when none is known
	Cursor    string          `json:"cursor"`   // what since continues from exactly
	Timestamp int64           `json:"timestamp"`
	Agents    []SnapshotAgent `json:"agents"`
	Calls     []SnapshotCall  `json:"calls"`
}

// SnapshotAgent is an agent who is at work. State and status are the source's
// words, "" where it has not said any.
type SnapshotAgent struct {
	AccountID string `json:"account_id"`
	AgentID   string `json:"agent_id"`
	State     string `json:"state"`
	Status    string `json:"status"`
	Since     int64  `json:"since"` // Unix seconds, when state or status last changed
}

// SnapshotCall is a call that waits in a queue, is offered to an agent, or is
// being talked on.
type SnapshotCall struct {
	AccountID string             `json:"account_id"`
	CallID    string             `json:"call_id"`
	QueueID   string             `json:"queue_id"` // "" when the source names none
	AgentID   string             `json:"agent_id"` // "" while it waits
	State     snapshot.CallState `json:"state"`
	Since     int64              `json:"since"` // Unix seconds, when it came into the state
}

// maxSnapshotAge is the longest time since a state last included the whole log.
// It is less than clockSkew, so that a resume by event_id replays everything
// that is not in the snapshot.
const maxSnapshotAge = 2 * time.Second

// Snapshot returns the agents and calls of the principal's accounts, regardless
// of its event types. Returns fault.KindUnavailable while a partition is
// behind.
func (f *Fanout) Snapshot(_ context.Context, p *identity.Principal) (*Snapshot, error) {
	if f.cfg.SnapshotHistory < 0 {
		return nil, fault.NotFound("Snapshots are switched off")
	}
	filter := newFilter(p, f.directory.Tree())
	if filter == nil {
		return nil, fault.Forbidden("the token's accounts are not accessible any more")
	}
	s, ok := f.folds.snapshot(time.Now(), func(account string) bool {
		// Asked for with the state in hand, the tree has every account in it.
		return filter.sees(account, f.directory.Tree())
	})
	if !ok {
		return nil, fault.Unavailable(nil, time.Second, "the snapshot is not complete yet, come back")
	}
	return s, nil
}

// snapshot merges the states of all partitions, one after the other; the cursor
// has the position of each. ok is false when one is behind.
func (w *folds) snapshot(now time.Time, admits func(account string) bool) (s *Snapshot, ok bool) {
	all := w.list()
	picture, places, last := snapshot.NewView(), make([]position, len(all)), event.ID(0)
	for i, d := range all {
		if !d.inspect(now, func() {
			picture.Add(d.state, admits, now)
			places[i] = d.at
			last = max(last, d.last)
		}) {
			return nil, false
		}
	}
	s = &Snapshot{EventID: last.String(), Cursor: appendCursor(w.f.logID(), last, places), Timestamp: now.Unix(),
		Agents: []SnapshotAgent{}, Calls: []SnapshotCall{}}
	for _, a := range picture.Agents() {
		s.Agents = append(s.Agents, SnapshotAgent{a.Account, a.ID, a.State, a.Status, a.Since})
	}
	for _, c := range picture.Calls() {
		s.Calls = append(s.Calls, SnapshotCall{c.Account, c.ID, c.Queue, c.Agent, c.State, c.Since})
	}
	return s, len(all) > 0
}

// inspect calls look with mu held. It returns false when the state is behind.
func (d *fold) inspect(now time.Time, look func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.currentAsOf()) > maxSnapshotAge {
		return false
	}
	look()
	return true
}
