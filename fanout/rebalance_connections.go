package fanout

import (
	"context"
	"math"
	"time"

	"trunkline/internal/retry"
)

// A node that is added to a cluster gets its share because the others disconnect
// their excess, and a balancer sends it to the new node. A balancer may as well send a
// connection back: one that hashes accounts does so with all that stay. So a round
// disconnects each connection at most once, account by account, at a pace that would
// reach the last one when the time is over, and ends as soon as the node has no
// excess.

// Fractions of its share by which a node may have more connections: a round begins
// above the first and ends at the second.
const (
	rebalanceAbove = 0.1
	rebalanceUntil = 0.02
)

// rebalance disconnects the connections that this node has above its share, for as long as ctx lasts.
func (c *cluster) rebalance(ctx context.Context) {
	if c.cfg.RebalanceTime == 0 {
		return
	}

	r := rebalancer{period: c.cfg.RebalanceTime}
	for range retry.Ticks(ctx, presenceInterval) {
		if c.draining.Load() || c.presenceUnavailable.Load() {
			continue
		}

		size := clusterSize{nodes: 1 + int(c.otherNodes.Load()), here: c.subscribers.countConnected(),
			others: int(c.otherConnections.Load())}
		wasIdle := !r.active()
		moving := r.nextToDisconnect(time.Now(), size, c.subscribers.listConnected)

		if wasIdle && r.active() {
			c.logger.Info("rebalance started", "nodes", size.nodes, "connections", size.here, "excess", size.excess(0))
		}

		for _, s := range moving {
			c.thisNode.disconnect(s, DisconnectRebalance)
		}

		c.metrics.rebalanced.Add(float64(len(moving)))
	}
}

// clusterSize counts the nodes and connections of the cluster, as this node last read them.
type clusterSize struct {
	nodes        int // with this one
	here, others int // connections of this node and of the others
}

// excess returns the number of connections above the node's share plus the margin, a
// fraction of the share; negative below that.
func (c clusterSize) excess(margin float64) int {
	share := float64(c.here+c.others) / float64(c.nodes)
	return c.here - int(math.Ceil(share*(1+margin)))
}

// rebalancer chooses the connections that a node disconnects.
type rebalancer struct {
	period    time.Duration // of a round, from the addition of the node
	lastNodes int           // in the cluster at the last call of nextToDisconnect; 0: none

	due         time.Time     // of the next round; zero: none
	startedAt   time.Time     // of the present round
	startCount  int           // connections of this node at its beginning
	takenCount  int           // connections taken from waiting in this round
	lastAccount string        // account of the last connection taken
	waiting     []*subscriber // connections of the round, ordered by account; empty: no round
}

func (r *rebalancer) active() bool { return len(r.waiting) > 0 }

// settleTime returns the time between the addition of a node and the round, within which
// balancers detect the node.
func (r *rebalancer) settleTime() time.Duration { return r.period / 10 }

// nextToDisconnect returns the connections to disconnect now; list returns all connections.
func (r *rebalancer) nextToDisconnect(now time.Time, c clusterSize, list func() []*subscriber) []*subscriber {
	if r.lastNodes != 0 && c.nodes > r.lastNodes {
		r.due = now.Add(r.settleTime())
		if r.active() {
			// The next round begins when the time of this one is over.
			r.due = r.startedAt.Add(r.period)
		}
	}

	r.lastNodes = c.nodes
	if !r.active() {
		if r.due.IsZero() || now.Before(r.due) {
			return nil
		}

		r.due = time.Time{}
		if c.excess(rebalanceAbove) <= 0 {
			return nil
		}

		r.waiting, r.startedAt, r.takenCount, r.lastAccount = groupByAccount(list()), now, 0, ""
		r.startCount = len(r.waiting)
	}

	pace := float64(r.startCount) / float64(r.period-r.settleTime())
	allowed := int(pace*float64(now.Sub(r.startedAt))) - r.takenCount
	excess := c.excess(rebalanceUntil)

	var moving []*subscriber
	for ; r.active() && allowed > 0; r.takenCount++ {
		s := r.waiting[0]
		account := s.principal.AccountOfEvents()
		// Finish an account that was begun, unless it is a large one.
		if excess <= 0 && (account != r.lastAccount || excess <= -r.startCount/20) {
			r.waiting = nil
			break
		}

		r.waiting, r.lastAccount = r.waiting[1:], account
		if s.isDisconnected() {
			continue
		}

		moving = append(moving, s)
		allowed--
		excess--
	}

	return moving
}

// groupByAccount groups the subscribers by account, in arbitrary order of accounts.
func groupByAccount(all []*subscriber) []*subscriber {
	accounts := map[string][]*subscriber{}
	for _, s := range all {
		account := s.principal.AccountOfEvents()
		accounts[account] = append(accounts[account], s)
	}

	ordered := all[:0]
	for _, subscribers := range accounts {
		ordered = append(ordered, subscribers...)
	}

	return ordered
}
