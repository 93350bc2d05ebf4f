package fanout

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/identity"
)

// An explanation says what became of one event at each connection. Nothing is written
// for it while events are delivered: it follows from a connection's filter, from where
// to where it is given events (connection_history.go), what waits in its queue, and the ring. A
// question goes to all nodes, since only the node of a connection knows.

// Outcome is the delivery state of an event at one connection.
type Outcome string

// The outcomes, most important first; docs/explain.md explains each.
const (
	OutcomeDropped Outcome = "dropped" // it was in the queue when the connection ended
	// the client requested a resume from before the event, which the log no longer has
	OutcomeRefused        Outcome = "resume_refused"
	OutcomeQueued         Outcome = "queued"          // it is in the connection's queue
	OutcomeReplaying      Outcome = "replaying"       // it is part of a replay that is running
	OutcomePending        Outcome = "pending"         // the node has not read it yet
	OutcomeDelivered      Outcome = "delivered"       // it was written to the connection
	OutcomeDisconnected   Outcome = "disconnected"    // the connection had ended before the event
	OutcomeResumedLater   Outcome = "resumed_later"   // the connection resumed from a position after the event
	OutcomeConnectedLater Outcome = "connected_later" // the connection began after the event, without a resume
	OutcomeFiltered       Outcome = "filtered"        // the login's filter does not select it
	OutcomeNotVisible     Outcome = "not_visible"     // the connection's user has no access to the event's account
)

var outcomeOrder = []Outcome{OutcomeDropped, OutcomeRefused, OutcomeQueued, OutcomeReplaying, OutcomePending,
	OutcomeDelivered,
	OutcomeDisconnected, OutcomeResumedLater, OutcomeConnectedLater, OutcomeFiltered, OutcomeNotVisible}

// Outcomes returns every outcome, in the order in which connections are listed.
func Outcomes() []Outcome { return slices.Clone(outcomeOrder) }

// Question requests the outcomes of one event.
type Question struct {
	EventID event.ID         `json:"event_id"`
	Offset  int64            `json:"offset"` // in the event's partition of cc.evt
	Message identity.Message `json:"message"`
	Root    string           `json:"root"`             // only connections of this account and its descendants
	Client  string           `json:"client,omitempty"` // only the connection with this id
	User    string           `json:"user,omitempty"`   // only those of this user (id or name) or API key (id)
}

// Connection describes the outcome of the event at one connection. Times are Unix
// seconds with milliseconds; 0 means unknown or not yet.
type Connection struct {
	ID          string                   `json:"id"`
	Node        string                   `json:"node"`
	AccountID   string                   `json:"account_id"`
	UserID      string                   `json:"user_id,omitempty"`
	Username    string                   `json:"username,omitempty"`
	KeyID       string                   `json:"key_id,omitempty"`
	Transport   string                   `json:"transport"`
	ConnectedAt float64                  `json:"connected_at"`
	ResumedFrom string                   `json:"resumed_from,omitempty"` // an event id, or Earliest
	Outcome     Outcome                  `json:"outcome"`
	FilteredBy  *identity.FilterMismatch `json:"filtered_by,omitempty"` // set with OutcomeFiltered
	// when the event was put on the queue; only while it is in the ring
	QueuedAt float64 `json:"queued_at,omitempty"`
	// the last event that was written to the connection
	LastEventID event.ID `json:"last_event_id,omitempty"`
	EndedAt     float64  `json:"ended_at,omitempty"`
	Code        int      `json:"code,omitempty"` // close code, or HTTP status of OutcomeRefused
	Reason      string   `json:"reason,omitempty"`
}

// NodeAnswer is the answer of one node.
type NodeAnswer struct {
	Node        string          `json:"node"`
	Since       float64         `json:"since"`       // Unix seconds: connections that ended earlier are not included
	Connections []Connection    `json:"connections"` // at most MaxListed
	Counts      map[Outcome]int `json:"counts"`      // of all connections
}

// MaxListed bounds the connections that an answer lists. They are ordered as in
// Outcomes, then newest first.
const MaxListed = 1000

// connectionExplainer answers questions about the connections of this node.
type connectionExplainer struct {
	nodeID             string
	directory          Directory
	subscribers        *subscriberSet
	followedPartitions *followedPartitions
	peers              Peers // nil: questions of other nodes are not answered
	pastConnections    pastConnections
}

// explainHere answers a question with the connections of this node.
func (x *connectionExplainer) explainHere(q *Question) NodeAnswer {
	past, since := x.pastConnections.list()
	a := NodeAnswer{Node: x.nodeID, Since: unixSeconds(since), Connections: []Connection{},
		Counts: map[Outcome]int{}}

	tree := x.directory.Tree()
	known := make(map[string]bool)
	add := func(id string, p *identity.Principal, describe func(*Connection)) {
		// A connection that ends between the two lists is in both.
		if known[id] || !q.selects(id, p, tree) {
			return
		}

		known[id] = true
		c := Connection{ID: id, Node: a.Node, AccountID: p.AccountID, UserID: p.UserID, Username: p.Username,
			KeyID: p.KeyID}
		m := &q.Message
		mismatch, visibility := p.Mismatch(p.AccountID, m, tree), x.directory.VisibilityOf(p)

		switch {
		case mismatch != nil && mismatch.Field == identity.FieldAccount:
			c.Outcome = OutcomeNotVisible
		case mismatch != nil:
			c.Outcome, c.FilteredBy = OutcomeFiltered, mismatch
		case !visibility.Admits(m.AccountID, m.AgentID, m.QueueID, m.OtherQueues),
			m.Name == event.NameCallTranscript && !visibility.SeesTranscripts():
			c.Outcome, c.FilteredBy = OutcomeFiltered, &identity.FilterMismatch{Field: identity.FieldRole}
		}

		describe(&c)
		a.Connections = append(a.Connections, c)
		a.Counts[c.Outcome]++
	}

	for _, s := range x.subscribers.everyone() {
		add(s.id, s.principal, func(c *Connection) { x.describe(s, q, c) })
	}

	for _, p := range past {
		add(p.id, p.principal, func(c *Connection) { p.describe(q, c) })
	}

	a.Connections = sortAndLimit(a.Connections)
	return a
}

// selects reports whether the question selects a connection and the caller has access
// to it.
func (q *Question) selects(id string, p *identity.Principal, tree *identity.Tree) bool {
	return tree.Contains(q.Root, p.AccountID) && (q.Client == "" || q.Client == id) &&
		(q.User == "" || q.User == p.UserID || q.User == p.Username || q.User == p.KeyID)
}

// sortAndLimit returns the first MaxListed connections.
func sortAndLimit(all []Connection) []Connection {
	slices.SortFunc(all, func(a, b Connection) int {
		return cmp.Or(cmp.Compare(slices.Index(outcomeOrder, a.Outcome), slices.Index(outcomeOrder, b.Outcome)),
			cmp.Compare(b.ConnectedAt, a.ConnectedAt), cmp.Compare(a.ID, b.ID))
	})
	return all[:min(len(all), MaxListed)]
}

// describe adds the details of a connected subscriber. It sets the outcome, unless the
// filter has already determined it.
func (x *connectionExplainer) describe(s *subscriber, q *Question, c *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.connectionHistory.end != nil {
		var d conn.Disconnect
		if s.closing != nil {
			d = s.closing.Disconnect
		}
		s.pastConnection(d).describe(q, c)
		return
	}

	c.Transport, c.ConnectedAt = s.transportName(), unixSeconds(s.connectedAt)
	c.ResumedFrom, c.LastEventID = s.connectionHistory.resumedFrom.String(), s.lastID
	if c.Outcome != "" {
		return
	}

	st := x.followedPartitions.stream(q.EventID.Partition())
	c.Outcome = s.eventOutcome(q, st)
	liveSince := s.connectionHistory.liveSince
	if st != nil && !liveSince.IsZero() && (c.Outcome == OutcomeDelivered || c.Outcome == OutcomeQueued) {
		if at, ok := st.readAt(q.Offset); ok && !at.Before(liveSince) {
			c.QueuedAt = unixSeconds(at)
		}
	}
}

// eventOutcome returns the outcome of an event that the filter selects. st may be nil. The
// caller holds mu.
func (s *subscriber) eventOutcome(q *Question, st *partitionStream) Outcome {
	partition := q.EventID.Partition()
	first, isOffered := offsetIn(s.connectionHistory.firstOffsets, partition)
	switch {
	case isOffered && q.Offset < first:
		return s.connectionHistory.outcomeBeforeFirst()
	case s.queue.Contains(int64(q.EventID)):
		return OutcomeQueued
	case !isOffered || !s.partitions.interest.has(partition) || st == nil:
		return OutcomePending // first event of an account in the partition, which the subscriber is about to join
	case s.replaying.Load() && !s.hasReplayed(q):
		return OutcomeReplaying
	case !s.replaying.Load() && q.Offset >= st.liveOffset():
		return OutcomePending
	}

	return OutcomeDelivered
}

// hasReplayed reports whether a replay has certainly passed the event, according to
// the cursor, or to the last id of a replay of a single partition.
func (s *subscriber) hasReplayed(q *Question) bool {
	if s.cursorTracker == nil {
		return len(s.connectionHistory.firstOffsets) == 1 && q.EventID <= s.lastID
	}
	i, found := s.cursorTracker.find(q.EventID.Partition())
	return found && q.Offset < s.cursorTracker.positions[i].next
}

// describe adds the details of a connection that has ended.
func (p *pastConnection) describe(q *Question, c *Connection) {
	c.Transport, c.ConnectedAt = p.transport, unixSeconds(p.connectedAt)
	c.ResumedFrom, c.LastEventID = p.resumedFrom.String(), p.lastID
	c.EndedAt, c.Code, c.Reason = unixSeconds(p.end.endedAt), p.disconnect.Code, p.disconnect.Reason
	if c.Outcome == "" {
		c.Outcome = p.eventOutcome(q)
	}
}

// eventOutcome returns the outcome of an event that the filter selects.
func (p *pastConnection) eventOutcome(q *Question) Outcome {
	first, wasOffered := offsetIn(p.firstOffsets, q.EventID.Partition())
	reached, known := offsetIn(p.end.reachedOffsets, q.EventID.Partition())
	switch {
	case p.refused && q.EventID > p.resumedFrom.after:
		return OutcomeRefused
	case p.refused || wasOffered && q.Offset < first:
		return p.outcomeBeforeFirst()
	case q.EventID == p.lastID:
		return OutcomeDelivered
	case known && q.Offset < reached && p.end.wasDropped(q.EventID):
		return OutcomeDropped
	// Where no offset was recorded it ended in a replay, which goes by id: what is below the last id was sent.
	case known && q.Offset < reached, !known && wasOffered && q.EventID < p.lastID && !p.end.wasDropped(q.EventID):
		return OutcomeDelivered
	}

	return OutcomeDisconnected
}

func (s *subscriber) transportName() string {
	if s.transport.answersPings() {
		return transportWebSocket
	}
	return transportEventStream
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// Peers carries questions to the other nodes and their answers back.
type Peers interface {
	// Ask sends the question to all other nodes. It returns the answers that arrive
	// before ctx ends, and the nodes that did not answer.
	Ask(ctx context.Context, node string, q Question) (answers []NodeAnswer, missing []string, err error)
	// Answer answers the questions of other nodes until ctx ends.
	Answer(ctx context.Context, node string, answer func(*Question) NodeAnswer)
}

// answerPeers answers the questions of other nodes until ctx ends.
func (x *connectionExplainer) answerPeers(ctx context.Context) {
	if x.peers != nil {
		x.peers.Answer(ctx, x.nodeID, x.explainHere)
	}
}

// Report has the answers of all nodes.
type Report struct {
	Nodes       []NodeAnswer // without their connections
	Missing     []string     // nodes that did not answer
	Complete    bool         // every node has answered
	Connections []Connection // at most MaxListed
	Counts      map[Outcome]int
}

// Explainer collects the outcomes of an event from all nodes.
type Explainer struct {
	Local *Fanout // nil: this process has no connections
	Peers Peers
	Log   *slog.Logger
}

// peersTimeout is the time for which Explain waits for answers of other nodes.
const peersTimeout = 700 * time.Millisecond

// Explain asks all nodes about an event. Without Redis the report is not complete.
func (e Explainer) Explain(ctx context.Context, q Question) Report {
	var answers []NodeAnswer
	node := ""
	if e.Local != nil {
		node = e.Local.cfg.NodeID
		answers = append(answers, e.Local.explanations.explainHere(&q))
	}

	ctx, cancel := context.WithTimeout(ctx, peersTimeout)
	defer cancel()

	others, missing, err := e.Peers.Ask(ctx, node, q)
	if err != nil {
		e.Log.Warn("question to the other nodes failed", "error", err)
	}

	r := Report{Nodes: []NodeAnswer{}, Missing: missing, Complete: err == nil && len(missing) == 0,
		Connections: []Connection{}, Counts: map[Outcome]int{}}
	for _, a := range append(answers, others...) {
		r.Connections = append(r.Connections, a.Connections...)
		for outcome, n := range a.Counts {
			r.Counts[outcome] += n
		}
		a.Connections = nil
		r.Nodes = append(r.Nodes, a)
	}

	r.Connections = sortAndLimit(r.Connections)
	return r
}
