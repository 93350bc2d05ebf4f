package fanout

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"trunkline/fanout/conn"
	"trunkline/identity"
)

// Client is one connection in the statistics; see docs/channel.md.
type Client struct {
	ID          string `json:"id"`
	AccountID   string `json:"account_id"`
	ConnectedAt int64  `json:"connected_at"` // Unix seconds
	LastPing    int64  `json:"last_ping"`    // Unix seconds of the last pong
}

// Presence is the shared list of the connections of all nodes. Entries of a
// node expire when it stops publishing.
type Presence interface {
	// Publish updates a node's connections and extends their expiry; with
	// replaceAll, changed replaces all of them. It returns the number stored for the
	// node.
	Publish(ctx context.Context, node string, changed []Client, removed []string,
		replaceAll bool) (total int, err error)
	// Others returns the number of other nodes and of their connections. Both may be
	// up to summaryTTL old.
	Others(ctx context.Context, node string) (nodes, connections int, err error)
	// Clients lists the connections of all other nodes.
	Clients(ctx context.Context, node string) ([]Client, error)
	// ReportLag stores a node's longest delivery lag in an hour.
	ReportLag(ctx context.Context, node string, hour time.Time, lag time.Duration) error
	// Lag returns the longest delivery lag of any node between two times. known is
	// false when reports may be missing: because the data begins less than a minute
	// before from, or because no node has reported.
	Lag(ctx context.Context, from, to time.Time) (lag time.Duration, known bool, err error)
	// Leave removes a node and its connections.
	Leave(ctx context.Context, node string) error
}

const (
	presenceInterval = 500 * time.Millisecond
	presenceTimeout  = time.Second
	renewEvery       = 10 // intervals after which leases are renewed, and a node without connections says that it lives
	summaryTTL       = 400 * time.Millisecond
)

// cluster is this node among the others: what it tells them of its connections, and what it
// knows of theirs.
type cluster struct {
	cfg         Config
	directory   Directory
	presence    Presence
	limiter     *connectionLimiter
	subscribers *subscriberSet
	thisNode    thisNode
	metrics     *metrics
	logger      *slog.Logger

	draining            atomic.Bool  // this node refuses connections
	presenceUnavailable atomic.Bool  // the last presence update failed
	otherNodes          atomic.Int64 // refreshed with otherConnections
	otherConnections    atomic.Int64 // connections of the other nodes, refreshed every presenceInterval
	worstLag            hourlyLag    // used by publishPresence only
}

// thisNode has the subscribers and streams of this node; *Fanout implements it.
type thisNode interface {
	// disconnect closes a subscriber with a close frame.
	disconnect(s *subscriber, d conn.Disconnect)
	// takeWorstLag returns the longest delivery lag since the last call. It returns false while
	// no partition is read.
	takeWorstLag(now time.Time) (lag time.Duration, ok bool)
}

// publishPresence publishes connections and delivery lag and renews leases, until ctx ends.
func (c *cluster) publishPresence(ctx context.Context) {
	ticker := time.NewTicker(presenceInterval)
	defer ticker.Stop()

	update := presenceUpdate{publishAll: true}
	for turn := 0; ; turn++ {
		select {
		case <-ctx.Done():
			// ctx has ended; without this, the node's connections would be counted until they expire.
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), presenceTimeout)
			defer cancel()
			_ = c.presence.Leave(leave, c.cfg.NodeID)
			return
		case <-ticker.C:
		}

		removed := c.subscribers.takeRemoved()
		idle := len(removed) == 0 && c.subscribers.countConnected() == 0 && !update.publishAll &&
			!c.presenceUnavailable.Load()
		if !idle || turn%renewEvery == 0 {
			c.recordResult(c.publishChanges(ctx, &update, removed))
		}

		c.reportDeliveryLag(ctx, time.Now())
		c.limiter.releaseLeases(ctx, removed)
		for _, s := range c.limiter.renewLeases(ctx, c.subscribers.listConnected(), turn%renewEvery != 0) {
			c.thisNode.disconnect(s, DisconnectReplaced)
		}
	}
}

// presenceUpdate decides whether the next update replaces all entries of this
// node.
type presenceUpdate struct {
	mismatched bool // the stored count differed in the last update
	publishAll bool // publish all connections in the next update
}

// publishChanges stores the changes since the last update, or all connections, and reads the
// number of connections of the other nodes.
func (c *cluster) publishChanges(ctx context.Context, update *presenceUpdate, removed []*subscriber) error {
	ids := make([]string, len(removed))
	for i, s := range removed {
		ids[i] = s.id
	}

	all := c.subscribers.listConnected()
	var changed []Client
	for _, s := range all {
		client := s.presenceClient()
		if update.publishAll || client.LastPing != s.publishedPong {
			s.publishedPong = client.LastPing
			changed = append(changed, client)
		}
	}

	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()

	total, err := c.presence.Publish(ctx, c.cfg.NodeID, changed, ids, update.publishAll)
	if err != nil {
		update.publishAll = true
		return err
	}

	// Concurrent connects can make one count differ; lost entries make two in a row
	// differ.
	off := total != len(all)
	update.publishAll, update.mismatched = off && update.mismatched, off
	nodes, connections, err := c.presence.Others(ctx, c.cfg.NodeID)
	if err == nil {
		c.otherNodes.Store(int64(nodes))
		c.otherConnections.Store(int64(connections))
	}

	return err
}

// recordResult counts the result of an update and logs changes of
// availability.
func (c *cluster) recordResult(err error) {
	switch {
	case err != nil && !c.presenceUnavailable.Swap(true):
		c.logger.Warn("shared connection state unavailable, only this node counted", "error", err)
	case err == nil && c.presenceUnavailable.Swap(false):
		c.logger.Info("shared connection state available again")
	}

	result := "ok"
	if err != nil {
		result = "failed"
	}

	c.metrics.presence.WithLabelValues(result).Inc()
}

func (s *subscriber) presenceClient() Client {
	return Client{ID: s.id, AccountID: s.principal.AccountID, ConnectedAt: s.connectedAt.Unix(),
		LastPing: s.lastPong.Load()}
}

// Status is the state of the channel on this node.
type Status string

// The states of a node.
const (
	StatusOK       Status = "ok"
	StatusDegraded Status = "degraded" // without Redis: counts include this node only
	StatusDraining Status = "draining"
)

// Health returns the node's status and the number of connections of the
// cluster, or of this node while Redis is unavailable. It does no I/O.
func (c *cluster) Health(context.Context) (Status, int) {
	here, others := c.subscribers.countConnected(), int(c.otherConnections.Load())
	switch {
	case c.draining.Load():
		return StatusDraining, here + others
	case c.presenceUnavailable.Load():
		return StatusDegraded, here
	}
	return StatusOK, here + others
}

// Stats lists the connections of the accounts that the caller has access to.
func (c *cluster) Stats(ctx context.Context, caller *identity.Principal) []Client {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()

	clients, err := c.presence.Clients(ctx, c.cfg.NodeID)
	if err != nil {
		// Without Redis, those of this node are listed.
		clients = nil
	}

	for _, s := range c.subscribers.listConnected() {
		clients = append(clients, s.presenceClient())
	}

	tree := c.directory.Tree()
	visible := []Client{}
	all := c.directory.VisibilityOf(caller).AdmitsAll()

	for _, client := range clients {
		if all && tree.Contains(caller.AccountID, client.AccountID) {
			visible = append(visible, client)
		}
	}

	return visible
}

// NoPresence is the presence of a process that has no connections and only reads the state.
type NoPresence struct{}

// Publish implements Presence.
func (NoPresence) Publish(context.Context, string, []Client, []string, bool) (int, error) {
	return 0, nil
}

// Others implements Presence.
func (NoPresence) Others(context.Context, string) (nodes, connections int, err error) {
	return 0, 0, nil
}

// Clients implements Presence.
func (NoPresence) Clients(context.Context, string) ([]Client, error) { return nil, nil }

// ReportLag implements Presence.
func (NoPresence) ReportLag(context.Context, string, time.Time, time.Duration) error { return nil }

// Lag implements Presence.
func (NoPresence) Lag(context.Context, time.Time, time.Time) (time.Duration, bool, error) {
	return 0, false, nil
}

// Leave implements Presence.
func (NoPresence) Leave(context.Context, string) error { return nil }
