package fanout

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/rounds"
)

//go:embed acquire.lua
var acquireScript string

// RedisLimits keeps leases in Redis: a sorted set per scope, with members that
// expire unless renewed, and a list per node of its evicted connections.
type RedisLimits struct {
	client        redis.UniversalClient
	prefix        string
	acquireScript *redis.Script
	acquisitions  rounds.Queue[*acquisition]
}

// NewRedisLimits stores its keys under prefix. It does not close the client.
func NewRedisLimits(client redis.UniversalClient, prefix string) *RedisLimits {
	l := &RedisLimits{client: client, prefix: prefix, acquireScript: redis.NewScript(acquireScript)}
	l.acquisitions = rounds.Queue[*acquisition]{Run: l.acquireAll, Max: maxRedisBatch}
	return l
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

// acquisition is one call of Acquire.
type acquisition struct {
	caller    context.Context
	node      string
	lease     ConnectionLease
	replace   bool
	result    *redis.Cmd // of the script
	fullScope string     // "": acquired
}

func (a *acquisition) succeeded() bool { return a.result.Err() == nil }

// Acquire implements Limits. Connections that come while Redis answers are counted together by the next
// request: after a restart of a node thousands come at once.
func (l *RedisLimits) Acquire(ctx context.Context, node string, lease ConnectionLease,
	replace bool) (fullScope string, err error) {
	a := &acquisition{caller: ctx, node: node, lease: lease, replace: replace}
	err = l.acquisitions.Do(ctx, a)
	if err != nil {
		return "", fmt.Errorf("acquiring a connection lease: %w", err)
	}
	return a.fullScope, nil
}

// acquireAll runs the script for each acquisition, in their order.
func (l *RedisLimits) acquireAll(all []*acquisition) error {
	ctx, cancel := context.WithTimeout(context.Background(), presenceTimeout)
	defer cancel()

	// Whose caller has gone away is not counted: nobody would release it.
	all = slices.DeleteFunc(all, func(a *acquisition) bool { return a.caller.Err() != nil })
	err := l.runScript(ctx, all)
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // Redis has started since, or another master has taken over
		err = l.acquireScript.Load(ctx, l.client).Err()
		if err == nil {
			err = l.runScript(ctx, slices.DeleteFunc(slices.Clone(all), (*acquisition).succeeded))
		}
	}
	if err != nil {
		return err
	}

	var evicted []any
	for _, a := range all {
		result, err := a.result.Slice()
		if err != nil {
			return err
		}

		// The script counts scopes from 1, as Lua does; 0: acquired.
		full, _ := result[0].(int64)
		if full > 0 {
			a.fullScope, _, _ = strings.Cut(a.lease.Scopes[full-1].Name, ":")
			continue
		}

		evicted = append(evicted, result[1:]...)
	}

	return l.notifyEvicted(ctx, evicted)
}

// runScript sends the acquisitions in one pipeline.
func (l *RedisLimits) runScript(ctx context.Context, all []*acquisition) error {
	now := time.Now()
	pipe := l.client.Pipeline()
	for _, a := range all {
		flag := 0
		if a.replace {
			flag = 1
		}

		keys := make([]string, len(a.lease.Scopes))
		args := []any{now.UnixMilli(), now.Add(leaseDuration).UnixMilli(), leaseMember(a.node, a.lease), flag}
		for i, scope := range a.lease.Scopes {
			keys[i] = l.scopeKey(scope.Name)
			args = append(args, scope.Max)
		}

		a.result = l.acquireScript.EvalSha(ctx, pipe, keys, args...)
	}

	_, err := pipe.Exec(ctx)
	return err
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
