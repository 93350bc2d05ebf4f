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
	// Publish applies changes to a node's connections and renews them. total is
	// how many they are; missing says that the shared view has lost some, and
	// wants them all again.
	Publish(ctx context.Context, node string, changed []Client, left []string, total int) (missing bool, err error)
	// Others counts the connections of all nodes but this.
	Others(ctx context.Context, node string) (int, error)
	// Clients lists the connections of all nodes but this.
	Clients(ctx context.Context, node string) ([]Client, error)
	// ReportLate notes how far behind a node has been at worst in an hour.
	ReportLate(ctx context.Context, node string, hour time.Time, late time.Duration) error
	// Late is how far behind any node has been from one hour to another; known
	// is false when no node has said anything about one of them.
	Late(ctx context.Context, from, to time.Time) (late time.Duration, known bool, err error)
	// Leave takes a node out at once.
	Leave(ctx context.Context, node string) error
}

const (
	presenceInterval = 500 * time.Millisecond
	presenceWait     = time.Second
	renewTurns       = 10 // places at limits are renewed every so many intervals
)

// publishPresence keeps the shared view current.
func (f *Fanout) publishPresence(ctx context.Context) {
	ticker := time.NewTicker(presenceInterval)
	defer ticker.Stop()
	pongs := make(map[string]int64)
	resync := true
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), presenceWait)
			defer cancel()
			_ = f.presence.Leave(leave, f.cfg.NodeID)
			return
		case <-ticker.C:
		}
		joined, left := f.members.changes()
		resync = !f.publish(ctx, pongs, joined, left, resync)
		f.reportLateness(ctx, time.Now())
		f.freeSeats(ctx, left)
		f.renewSeats(ctx, turn%renewTurns == 0)
	}
}

// publish sends what has changed since the last time, or everything. pongs is
// what was last sent of each connection.
func (f *Fanout) publish(ctx context.Context, pongs map[string]int64, joined, left []*subscriber, everything bool) (ok bool) {
	all := f.members.all()
	for _, s := range joined {
		delete(pongs, s.id)
	}
	var changed []Client
	for _, s := range all {
		if sent, ok := pongs[s.id]; !ok || everything || sent != s.lastPong.Load() {
			c := s.client()
			pongs[s.id] = c.LastPing
			changed = append(changed, c)
		}
	}
	ids := make([]string, len(left))
	for i, s := range left {
		ids[i] = s.id
		delete(pongs, s.id)
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	missing, err := f.presence.Publish(ctx, f.cfg.NodeID, changed, ids, len(all))
	if err != nil {
		if !f.apart.Swap(true) {
			f.logger.Warn("shared connection state is away: serving from this node alone", "error", err)
		}
		f.metrics.presence.WithLabelValues("failed").Inc()
		return false
	}
	if f.apart.Swap(false) {
		f.logger.Info("shared connection state is back")
	}
	f.metrics.presence.WithLabelValues("ok").Inc()
	return !missing
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
// this node alone while the shared view is away.
func (f *Fanout) Health(ctx context.Context) (Status, int) {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	others, err := f.presence.Others(ctx, f.cfg.NodeID)
	status := StatusOK
	if err != nil || f.apart.Load() {
		status = StatusDegraded
	}
	if f.draining.Load() {
		status = StatusDraining
	}
	return status, f.members.count() + others
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
