package identity

import (
	"context"
	_ "embed"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

//go:embed limiter.lua
var limiterScript string

const (
	// limiterTag follows the prefix of every key. The braces keep a login's
	// counters in one slot of a Redis Cluster.
	limiterTag     = "{logins}:"
	limiterTimeout = 500 * time.Millisecond
	// How long Redis is left alone after it failed, so that its time-outs do
	// not add up.
	limiterRest = time.Second
)

// RedisLimiter counts in Redis, for all nodes together. While Redis is away it
// counts in this process: logins go on, and guessing gains little.
type RedisLimiter struct {
	client    redis.UniversalClient
	prefix    string
	script    *redis.Script
	memory    *MemoryLimiter
	restUntil atomic.Int64 // Unix nanoseconds
	fallbacks prometheus.Counter
	log       *slog.Logger
}

// NewRedisLimiter makes one on a client that it does not close, with keys that
// begin with prefix. The client
// should have ContextTimeoutEnabled, else its own time-outs hold instead of
// half a second.
func NewRedisLimiter(client redis.UniversalClient, prefix string, reg prometheus.Registerer, log *slog.Logger) (*RedisLimiter, error) {
	if client == nil {
		return nil, errors.New("identity: the limiter has no Redis client")
	}
	return &RedisLimiter{
		client:    client,
		prefix:    prefix + limiterTag,
		script:    redis.NewScript(limiterScript),
		memory:    NewMemoryLimiter(),
		fallbacks: newFallbacks(reg),
		log:       log,
	}, nil
}

// Wait implements Limiter.
func (l *RedisLimiter) Wait(ctx context.Context, limits ...Limit) time.Duration {
	if wait, ok := l.ask(ctx, 0, limits); ok {
		return wait
	}
	return l.memory.Wait(ctx, limits...)
}

// Fail implements Limiter. Memory counts along, so that what failed here is
// known should Redis go away.
func (l *RedisLimiter) Fail(ctx context.Context, limits ...Limit) time.Duration {
	here := l.memory.Fail(ctx, limits...)
	if wait, ok := l.ask(ctx, 1, limits); ok {
		return wait
	}
	return here
}

func (l *RedisLimiter) ask(ctx context.Context, failures int, limits []Limit) (wait time.Duration, ok bool) {
	if time.Now().UnixNano() < l.restUntil.Load() {
		l.fallbacks.Inc()
		return 0, false
	}
	keys := make([]string, len(limits))
	args := []any{failures}
	for i, limit := range limits {
		keys[i] = l.prefix + limit.Subject
		args = append(args, limit.Max, limit.Window.Milliseconds())
	}
	// A client that hangs up must not spare itself the count.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limiterTimeout)
	defer cancel()
	millis, err := l.script.Run(bounded, l.client, keys, args...).Int64()
	if err != nil {
		l.fallbacks.Inc()
		l.restUntil.Store(time.Now().Add(limiterRest).UnixNano())
		l.log.WarnContext(ctx, "Redis unavailable, login limits counted in this process only", "error", err)
		return 0, false
	}
	return time.Duration(millis) * time.Millisecond, true
}
