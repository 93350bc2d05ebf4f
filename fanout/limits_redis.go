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

//go:embed take.lua
var takeScript string

// RedisLimits counts connections in Redis: a sorted set for each scope, whose
// members are lost when they are not renewed, and a list for each node of the
// connections that others have sent away.
type RedisLimits struct {
	client redis.UniversalClient
	prefix string
	take   *redis.Script
}

// NewRedisLimits keeps its keys under prefix. The client is not closed.
func NewRedisLimits(client redis.UniversalClient, prefix string) *RedisLimits {
	return &RedisLimits{client: client, prefix: prefix, take: redis.NewScript(takeScript)}
}

// seatLife is how long a place outlives its last renewal.
const seatLife = nodeLife

// All scopes share one hash tag: the script takes several at once.
func (l *RedisLimits) scope(name string) string { return l.prefix + "{fanout:seats}:" + name }
func (l *RedisLimits) evictions(node string) string {
	return l.prefix + "{fanout:seats}:evicted:" + node
}

func seatMember(node string, s Seat) string {
	return node + "|" + s.ID + "|" + strconv.FormatInt(s.Since.UnixMilli(), 10)
}

// Take implements Limits.
func (l *RedisLimits) Take(ctx context.Context, node string, s Seat, replace bool) (full string, err error) {
	now := time.Now()
	flag := 0
	if replace {
		flag = 1
	}
	keys := make([]string, len(s.Scopes))
	args := []any{now.UnixMilli(), now.Add(seatLife).UnixMilli(), seatMember(node, s), flag}
	for i, scope := range s.Scopes {
		keys[i] = l.scope(scope.Name)
		args = append(args, scope.Max)
	}
	result, err := l.take.Run(ctx, l.client, keys, args...).Slice()
	if err != nil {
		return "", fmt.Errorf("taking a place: %w", err)
	}
	if at, ok := result[0].(int64); ok && at > 0 {
		kind, _, _ := strings.Cut(s.Scopes[at-1].Name, ":")
		return kind, nil
	}
	return "", l.evict(ctx, result[1:])
}

func (l *RedisLimits) evict(ctx context.Context, members []any) error {
	if len(members) == 0 {
		return nil
	}
	pipe := l.client.Pipeline()
	for _, m := range members {
		name, _ := m.(string)
		node, rest, _ := strings.Cut(name, "|")
		id, _, _ := strings.Cut(rest, "|")
		pipe.RPush(ctx, l.evictions(node), id)
		pipe.PExpire(ctx, l.evictions(node), seatLife)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("sending connections away: %w", err)
	}
	return nil
}

// Renew implements Limits. A place that was lost (Redis was away, or began
// anew) is taken again.
func (l *RedisLimits) Renew(ctx context.Context, node string, seats []Seat) (evicted []string, err error) {
	pipe := l.client.Pipeline()
	list := pipe.LRange(ctx, l.evictions(node), 0, -1)
	pipe.Del(ctx, l.evictions(node))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("renewing places: %w", err)
	}
	evicted = list.Val()
	gone := make(map[string]bool, len(evicted))
	for _, id := range evicted {
		gone[id] = true
	}
	until := time.Now().Add(seatLife)
	return evicted, l.each(ctx, seats, func(pipe redis.Pipeliner, key string, s Seat) {
		if !gone[s.ID] {
			pipe.ZAdd(ctx, key, redis.Z{Score: float64(until.UnixMilli()), Member: seatMember(node, s)})
			pipe.PExpire(ctx, key, seatLife)
		}
	})
}

// Free implements Limits.
func (l *RedisLimits) Free(ctx context.Context, node string, seats []Seat) error {
	return l.each(ctx, seats, func(pipe redis.Pipeliner, key string, s Seat) {
		pipe.ZRem(ctx, key, seatMember(node, s))
	})
}

func (l *RedisLimits) each(ctx context.Context, seats []Seat, do func(redis.Pipeliner, string, Seat)) error {
	for len(seats) > 0 {
		n := min(len(seats), redisFields)
		pipe := l.client.Pipeline()
		for _, s := range seats[:n] {
			for _, scope := range s.Scopes {
				do(pipe, l.scope(scope.Name), s)
			}
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return fmt.Errorf("updating places: %w", err)
		}
		seats = seats[n:]
	}
	return nil
}
