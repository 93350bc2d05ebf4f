package fanout

import (
	"context"
	"time"

	"trunkline/identity"
)

// Client is one connection, as statistics show it (specification, "Health and
// statistics results").
type Client struct {
	ID          string `json:"id"`
	AccountID   string `json:"account_id"`
	ConnectedAt int64  `json:"connected_at"` // Unix seconds
	LastPing    int64  `json:"last_ping"`    // Unix seconds of the last pong
}

// Presence is the nodes' shared view of who is connected. What a node has
// published disappears by itself when the node does.
type Presence interface {
	// Publish applies changes to a node's connections and renews them; with
	// whole, changed is all there are. It returns how many the shared view has
	// now.
	Publish(ctx context.Context, node string, changed []Client, left []string, whole bool) (total int, err error)
	// Others counts the connections of all nodes but this.
	Others(ctx context.Context, node string) (int, error)
	// Clients lists the connections of all nodes but this.
	Clients(ctx context.Context, node string) ([]Client, error)
	// ReportLag notes how far behind a node has been at worst in an hour.
	ReportLag(ctx context.Context, node string, hour time.Time, lag time.Duration) error
	// Lag returns how far behind any node has been from one time to another.
	// known is false when reports of nodes may be missing: the shared view does
	// not go back to a minute before that time, or no node has reported.
	Lag(ctx context.Context, from, to time.Time) (lag time.Duration, known bool, err error)
	// Leave takes a node out at once.
	Leave(ctx context.Context, node string) error
}

const (
	presenceInterval = 500 * time.Millisecond
	presenceWait     = time.Second
	renewEvery       = 10 // places at limits are renewed every so many intervals
)

// publishPresence keeps the shared view current.
func (f *Fanout) publishPresence(ctx context.Context) {
	ticker := time.NewTicker(presenceInterval)
	defer ticker.Stop()
	view := presenceState{publishAll: true}
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), presenceWait)
			defer cancel()
			_ = f.presence.Leave(leave, f.cfg.NodeID)
			return
		case <-ticker.C:
		}
		left := f.members.takeRemoved()
		f.recordPresenceResult(f.publish(ctx, &view, left))
		f.reportDeliveryLag(ctx, time.Now())
		f.releaseLeases(ctx, left)
		f.renewLeases(ctx, turn%renewEvery == 0)
	}
}

// view is what this node knows of its part of the shared view.
type presenceState struct {
	mismatched bool // the count was wrong the last time
	publishAll bool // publish everything the next time
}

// publish sends what has changed since the last time, or everything, and asks
// for the others' count.
func (f *Fanout) publish(ctx context.Context, v *presenceState, left []*subscriber) error {
	ids := make([]string, len(left))
	for i, s := range left {
		ids[i] = s.id
	}
	all := f.members.all()
	var changed []Client
	for _, s := range all {
		if c := s.client(); v.publishAll || c.LastPing != s.published {
			s.published = c.LastPing
			changed = append(changed, c)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	total, err := f.presence.Publish(ctx, f.cfg.NodeID, changed, ids, v.publishAll)
	if err != nil {
		v.publishAll = true
		return err
	}
	// Who came or left meanwhile makes a difference once, what was lost twice.
	off := total != len(all)
	v.publishAll, v.mismatched = off && v.mismatched, off
	others, err := f.presence.Others(ctx, f.cfg.NodeID)
	if err == nil {
		f.otherConnections.Store(int64(others))
	}
	return err
}

// shared notes whether the shared view could be reached.
func (f *Fanout) recordPresenceResult(err error) {
	switch {
	case err != nil && !f.presenceUnavailable.Swap(true):
		f.logger.Warn("shared connection state is away: counting this node alone", "error", err)
	case err == nil && f.presenceUnavailable.Swap(false):
		f.logger.Info("shared connection state is back")
	}
	result := "ok"
	if err != nil {
		result = "failed"
	}
	f.metrics.presence.WithLabelValues(result).Inc()
}

func (s *subscriber) client() Client {
	return Client{ID: s.id, AccountID: s.principal.AccountID, ConnectedAt: s.connected.Unix(), LastPing: s.lastPong.Load()}
}

// Status is the channel's state in one word.
type Status string

// The states of a node.
const (
	StatusOK       Status = "ok"
	StatusDegraded Status = "degraded" // without Redis: this node alone
	StatusDraining Status = "draining"
)

// Health is the node's status and the connections of the whole cluster, of
// this node alone while the shared view is away. It asks nobody.
func (f *Fanout) Health(context.Context) (Status, int) {
	here, others := f.members.count(), int(f.otherConnections.Load())
	switch {
	case f.draining.Load():
		return StatusDraining, here + others
	case f.presenceUnavailable.Load():
		return StatusDegraded, here
	}
	return StatusOK, here + others
}

// Stats lists the connections of the accounts the caller may see.
func (f *Fanout) Stats(ctx context.Context, caller *identity.Principal) []Client {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	clients, err := f.presence.Clients(ctx, f.cfg.NodeID)
	if err != nil {
		clients = nil
	}
	for _, s := range f.members.all() {
		clients = append(clients, s.client())
	}
	tree := f.directory.Tree()
	visible := []Client{}
	for _, c := range clients {
		if tree.Contains(caller.AccountID, c.AccountID) {
			visible = append(visible, c)
		}
	}
	return visible
}
