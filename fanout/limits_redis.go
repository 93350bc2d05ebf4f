package fanout

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed acquire.lua
var acquireScript string

// RedisLimits keeps leases in Redis: a sorted set per scope, with members that
// expire unless renewed, and a list per node of its evicted connections.
type RedisLimits struct {
	client        redis.UniversalClient
	prefix        string
	acquireScript *redis.Script
}

// NewRedisLimits stores its keys under prefix. It does not close the client.
func NewRedisLimits(client redis.UniversalClient, prefix string) *RedisLimits {
	return &RedisLimits{client: client, prefix: prefix, acquireScript: redis.NewScript(acquireScript)}
}

// leaseDuration is the time from a renewal to the expiry.
const leaseDuration = nodeTTL

// scopeKey returns the key of a scope. All scopes share one hash tag, because the script
// uses several keys.
func (l *RedisLimits) scopeKey(name string) string { return l.prefix + "{fanout:seats}:" + name }
func (l *RedisLimits) evictionsKey(node string) string {
	return l.prefix + "{fanout:seats}:evicted:" + node
}

func leaseMember(node string, lease ConnectionLease) string {
	return node + "|" + lease.ID + "|" + strconv.FormatInt(lease.Since.UnixMilli(), 10)
}

// Acquire implements Limits.
func (l *RedisLimits) Acquire(ctx context.Context, node string, lease ConnectionLease,
	replace bool) (fullScope string, err error) {
	now := time.Now()
	flag := 0
	if replace {
		flag = 1
	}

	keys := make([]string, len(lease.Scopes))
	args := []any{now.UnixMilli(), now.Add(leaseDuration).UnixMilli(), leaseMember(node, lease), flag}
	for i, scope := range lease.Scopes {
		keys[i] = l.scopeKey(scope.Name)
		args = append(args, scope.Max)
	}

	result, err := l.acquireScript.Run(ctx, l.client, keys, args...).Slice()
	if err != nil {
		return "", fmt.Errorf("acquiring a connection lease: %w", err)
	}

	// The script counts scopes from 1, as Lua does; 0: acquired.
	if full, ok := result[0].(int64); ok && full > 0 {
		kind, _, _ := strings.Cut(lease.Scopes[full-1].Name, ":")
		return kind, nil
	}

	return "", l.notifyEvicted(ctx, result[1:])
}

func (l *RedisLimits) notifyEvicted(ctx context.Context, members []any) error {
	if len(members) == 0 {
		return nil
	}

	pipe := l.client.Pipeline()
	for _, m := range members {
		name, _ := m.(string)
		node, rest, _ := strings.Cut(name, "|")
		id, _, _ := strings.Cut(rest, "|")
		pipe.RPush(ctx, l.evictionsKey(node), id)
		pipe.PExpire(ctx, l.evictionsKey(node), leaseDuration)
	}

	_, err := pipe.Exec(ctx)
	if err != nil {
		return fmt.Errorf("evicting connections: %w", err)
	}

	return nil
}

// Renew implements Limits. It also restores leases that Redis has lost.
func (l *RedisLimits) Renew(ctx context.Context, node string, leases []ConnectionLease) (evicted []string, err error) {
	pipe := l.client.TxPipeline() // an eviction between the two commands would be lost
	list := pipe.LRange(ctx, l.evictionsKey(node), 0, -1)
	pipe.Del(ctx, l.evictionsKey(node))
	_, err = pipe.Exec(ctx)
	if err != nil {
		return nil, fmt.Errorf("renewing connection leases: %w", err)
	}

	evicted = list.Val()
	gone := make(map[string]bool, len(evicted))
	for _, id := range evicted {
		gone[id] = true
	}

	until := time.Now().Add(leaseDuration)
	return evicted, l.forEachScope(ctx, leases, func(pipe redis.Pipeliner, key string, lease ConnectionLease) {
		// It is about to be closed, and another connection has taken its place.
		if !gone[lease.ID] {
			pipe.ZAdd(ctx, key, redis.Z{Score: float64(until.UnixMilli()), Member: leaseMember(node, lease)})
			pipe.PExpire(ctx, key, leaseDuration)
		}
	})
}

// Release implements Limits.
func (l *RedisLimits) Release(ctx context.Context, node string, leases []ConnectionLease) error {
	return l.forEachScope(ctx, leases, func(pipe redis.Pipeliner, key string, lease ConnectionLease) {
		pipe.ZRem(ctx, key, leaseMember(node, lease))
	})
}

func (l *RedisLimits) forEachScope(ctx context.Context, leases []ConnectionLease,
	do func(redis.Pipeliner, string, ConnectionLease)) error {
	for len(leases) > 0 {
		n := min(len(leases), maxRedisBatch)
		pipe := l.client.Pipeline()
		for _, lease := range leases[:n] {
			for _, scope := range lease.Scopes {
				do(pipe, l.scopeKey(scope.Name), lease)
			}
		}

		_, err := pipe.Exec(ctx)
		if err != nil {
			return fmt.Errorf("updating connection leases: %w", err)
		}

		leases = leases[n:]
	}

	return nil
}
