package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisPresence stores the nodes' connections in Redis: a hash per node, from
// connection id to its Client as JSON, that expires with the node; a sorted set of
// nodes by their last update; and the summary shared by the nodes.
type RedisPresence struct {
	Client redis.UniversalClient
	Prefix string // of every key
}

// nodeTTL is the time from a node's last update to the expiry of its
// connections.
const nodeTTL = 15 * time.Second

func (p *RedisPresence) nodesKey() string { return p.Prefix + "fanout:nodes" }
func (p *RedisPresence) connectionsKey(node string) string {
	return p.Prefix + "fanout:conns:{" + node + "}"
}

// maxRedisBatch is the maximum number of fields per command, so that a node with many
// connections does not block Redis.
const maxRedisBatch = 500

// Publish implements Presence.
func (p *RedisPresence) Publish(ctx context.Context, node string, changed []Client, removed []string,
	replaceAll bool) (total int, err error) {
	key := p.connectionsKey(node)
	pipe := p.Client.Pipeline()
	if replaceAll {
		pipe.Del(ctx, key)
	}

	for len(changed) > 0 {
		n := min(len(changed), maxRedisBatch)
		fields := make([]any, 0, 2*n)
		for _, c := range changed[:n] {
			value, err := json.Marshal(c)
			if err != nil {
				return 0, err
			}
			fields = append(fields, c.ID, value)
		}

		pipe.HSet(ctx, key, fields...)
		changed = changed[n:]
	}

	for len(removed) > 0 {
		n := min(len(removed), maxRedisBatch)
		pipe.HDel(ctx, key, removed[:n]...)
		removed = removed[n:]
	}

	count := pipe.HLen(ctx, key)
	pipe.PExpire(ctx, key, nodeTTL)
	pipe.ZAdd(ctx, p.nodesKey(), redis.Z{Score: float64(time.Now().UnixMilli()), Member: node})
	pipe.PExpire(ctx, p.nodesKey(), nodeTTL)
	_, err = pipe.Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("publishing connections: %w", err)
	}

	return int(count.Val()), nil
}

// allNodes returns the nodes that published recently. It removes nodes whose last
// update is older than twice nodeTTL; clocks may differ by less than nodeTTL.
func (p *RedisPresence) allNodes(ctx context.Context) ([]string, error) {
	oldest := strconv.FormatInt(time.Now().Add(-2*nodeTTL).UnixMilli(), 10)
	pipe := p.Client.Pipeline()
	pipe.ZRemRangeByScore(ctx, p.nodesKey(), "-inf", "("+oldest)
	all := pipe.ZRange(ctx, p.nodesKey(), 0, -1)
	_, err := pipe.Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return all.Val(), nil
}

// summaryKey returns the key of a hash with the number of connections of each node, their
// sum, and the number of nodes. It expires after summaryTTL.
func (p *RedisPresence) summaryKey() string { return p.Prefix + "fanout:summary" }

const (
	summaryNodes       = "nodes"
	summaryConnections = "connections"
	summaryNodePrefix  = "node:" // followed by the node's name
)

// Others implements Presence. The first node that finds no summary counts for all
// nodes, so that the load on Redis grows linearly with the number of nodes instead of
// quadratically.
func (p *RedisPresence) Others(ctx context.Context, node string) (nodes, connections int, err error) {
	var total struct {
		Nodes       int `redis:"nodes"`
		Connections int `redis:"connections"`
	}
	stored := p.Client.HMGet(ctx, p.summaryKey(), summaryNodes, summaryConnections, summaryNodePrefix+node)
	if err := stored.Scan(&total); err != nil {
		return 0, 0, fmt.Errorf("counting connections: %w", err)
	}
	if total.Nodes == 0 {
		return p.summarize(ctx, node)
	}

	own, listed := stored.Val()[2].(string)
	if !listed {
		return total.Nodes, total.Connections, nil
	}

	here, err := strconv.Atoi(own)
	if err != nil {
		return 0, 0, fmt.Errorf("counting connections: %w", err)
	}

	return total.Nodes - 1, total.Connections - here, nil
}

// summarize counts the connections of each node, stores the summary, and returns the
// results of Others.
func (p *RedisPresence) summarize(ctx context.Context, node string) (nodes, connections int, err error) {
	all, err := p.allNodes(ctx)
	if err != nil || len(all) == 0 {
		return 0, 0, err
	}

	pipe := p.Client.Pipeline()
	lengths := make([]*redis.IntCmd, len(all))
	for i, name := range all {
		lengths[i] = pipe.HLen(ctx, p.connectionsKey(name))
	}

	_, err = pipe.Exec(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("counting connections: %w", err)
	}

	here := 0
	fields := make([]any, 0, 2*len(all)+4)
	for i, name := range all {
		n := int(lengths[i].Val())
		fields = append(fields, summaryNodePrefix+name, n)
		if name == node {
			here += n
			continue
		}

		nodes++
		connections += n
	}

	fields = append(fields, summaryNodes, len(all), summaryConnections, here+connections)
	// As a transaction: a summary without its expiry would be taken for current for ever.
	pipe = p.Client.TxPipeline()
	pipe.Del(ctx, p.summaryKey())
	pipe.HSet(ctx, p.summaryKey(), fields...)
	pipe.PExpire(ctx, p.summaryKey(), summaryTTL)
	_, err = pipe.Exec(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("storing the counts of connections: %w", err)
	}

	return nodes, connections, nil
}

// Clients implements Presence.
func (p *RedisPresence) Clients(ctx context.Context, node string) ([]Client, error) {
	nodes, err := p.allNodes(ctx)
	if err != nil {
		return nil, err
	}

	var clients []Client
	for _, name := range nodes {
		if name == node {
			continue
		}

		values, err := p.Client.HVals(ctx, p.connectionsKey(name)).Result()
		if err != nil {
			return nil, fmt.Errorf("listing connections: %w", err)
		}

		for _, value := range values {
			var c Client
			if err := json.Unmarshal([]byte(value), &c); err != nil {
				return nil, fmt.Errorf("listing connections: %w", err)
			}
			clients = append(clients, c)
		}
	}

	return clients, nil
}

// Leave implements Presence.
func (p *RedisPresence) Leave(ctx context.Context, node string) error {
	pipe := p.Client.Pipeline()
	pipe.Del(ctx, p.connectionsKey(node))
	pipe.ZRem(ctx, p.nodesKey(), node)
	pipe.Del(ctx, p.summaryKey())
	_, err := pipe.Exec(ctx)
	return err
}

const (
	// lagTTL is the time for which delivery lag is stored; for older hours it is unknown.
	lagTTL = 8 * 24 * time.Hour
	// lagSettle is the time within which every node reports again after Redis has lost
	// its data.
	lagSettle = time.Minute
)

// lagPrefix returns the prefix of the keys of delivery lag. In a Redis Cluster they
// share a hash slot, so that a Redis node which loses data loses all of them: lagSinceKey
// never outlives reports.
func (p *RedisPresence) lagPrefix() string {
	_, cluster := p.Client.(*redis.ClusterClient)
	if cluster {
		return p.Prefix + "{fanout:late}:"
	}
	return p.Prefix + "fanout:late:"
}

func (p *RedisPresence) lagKey(hour time.Time) string {
	return p.lagPrefix() + strconv.FormatInt(hour.Unix(), 10)
}

// lagSinceKey returns the key of the time, in Unix milliseconds, from which reports are
// complete, except for lagSettle after it. The key is missing after Redis has lost its
// data.
func (p *RedisPresence) lagSinceKey() string { return p.lagPrefix() + "since" }

// ReportLag implements Presence. It stores a hash per hour, from node to milliseconds.
func (p *RedisPresence) ReportLag(ctx context.Context, node string, hour time.Time, lag time.Duration) error {
	pipe := p.Client.Pipeline()
	pipe.SetNX(ctx, p.lagSinceKey(), time.Now().UnixMilli(), lagTTL)
	pipe.PExpire(ctx, p.lagSinceKey(), lagTTL)
	// Rounded up, so that a rewind by it never begins too late.
	pipe.HSet(ctx, p.lagKey(hour), node, lag.Milliseconds()+1)
	pipe.PExpire(ctx, p.lagKey(hour), lagTTL)
	_, err := pipe.Exec(ctx)
	if err != nil {
		return fmt.Errorf("reporting the delivery lag: %w", err)
	}

	return nil
}

// Lag implements Presence. An hour without reports means that no node followed any
// partition, except for the first requested hour.
func (p *RedisPresence) Lag(ctx context.Context, from, to time.Time) (lag time.Duration, known bool, err error) {
	first := from.Truncate(time.Hour)
	if to.Sub(first) > lagTTL-time.Hour || to.Before(first) {
		return 0, false, nil
	}

	pipe := p.Client.Pipeline()
	since := pipe.Get(ctx, p.lagSinceKey())

	var hours []*redis.StringSliceCmd
	for hour := first; !hour.After(to); hour = hour.Add(time.Hour) {
		hours = append(hours, pipe.HVals(ctx, p.lagKey(hour)))
	}

	_, err = pipe.Exec(ctx)
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, false, fmt.Errorf("asking for the delivery lag: %w", err)
	}

	ms, err := since.Int64()
	if err == nil {
		known = !from.Before(time.UnixMilli(ms).Add(lagSettle)) && len(hours[0].Val()) > 0
	}

	for _, hour := range hours {
		for _, value := range hour.Val() {
			ms, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return 0, false, fmt.Errorf("asking for the delivery lag: %w", err)
			}
			lag = max(lag, time.Duration(ms)*time.Millisecond)
		}
	}

	return lag, known, nil
}
