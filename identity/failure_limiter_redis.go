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
	// limiterRetryDelay is the time without requests to Redis after a failure, so that
	// logins do not each wait for limiterTimeout.
	limiterRetryDelay = time.Second
)

// RedisLimiter counts the failures of all nodes in Redis. While Redis is unavailable it
// counts in this process: logins still work, and an attacker gains few more guesses.
type RedisLimiter struct {
	client         redis.UniversalClient
	prefix         string
	script         *redis.Script
	fallback       *MemoryLimiter
	skipRedisUntil atomic.Int64 // Unix nanoseconds
	fallbacks      prometheus.Counter
	log            *slog.Logger
}

// NewRedisLimiter returns a limiter whose keys begin with prefix. It does not close
// client. The client should have ContextTimeoutEnabled, else its own time-outs apply
// instead of limiterTimeout.
func NewRedisLimiter(client redis.UniversalClient, prefix string, reg prometheus.Registerer,
	log *slog.Logger) (*RedisLimiter, error) {
	if client == nil {
		return nil, errors.New("identity: the limiter has no Redis client")
	}

	return &RedisLimiter{
		client:    client,
		prefix:    prefix + limiterTag,
		script:    redis.NewScript(limiterScript),
		fallback:  NewMemoryLimiter(),
		fallbacks: newFallbacks(reg),
		log:       log,
	}, nil
}

// Wait implements Limiter.
func (l *RedisLimiter) Wait(ctx context.Context, limits ...Limit) time.Duration {
	if wait, ok := l.runScript(ctx, 0, limits); ok {
		return wait
	}
	return l.fallback.Wait(ctx, limits...)
}

// Fail implements Limiter. It also counts in memory, so that the failures at this
// process still count if Redis becomes unavailable.
func (l *RedisLimiter) Fail(ctx context.Context, limits ...Limit) time.Duration {
	localWait := l.fallback.Fail(ctx, limits...)
	if wait, ok := l.runScript(ctx, 1, limits); ok {
		return wait
	}
	return localWait
}

// runScript adds failures (0 or 1) to the count of each limit and returns the wait. ok is
// false if Redis is unavailable.
func (l *RedisLimiter) runScript(ctx context.Context, failures int, limits []Limit) (wait time.Duration, ok bool) {
	if time.Now().UnixNano() < l.skipRedisUntil.Load() {
		l.fallbacks.Inc()
		return 0, false
	}

	keys := make([]string, len(limits))
	args := []any{failures}
	for i, limit := range limits {
		keys[i] = l.prefix + limit.Subject
		args = append(args, limit.Max, limit.Window.Milliseconds())
	}

	// Count the failure even if the client has disconnected.
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limiterTimeout)
	defer cancel()

	millis, err := l.script.Run(bounded, l.client, keys, args...).Int64()
	if err != nil {
		l.fallbacks.Inc()
		l.skipRedisUntil.Store(time.Now().Add(limiterRetryDelay).UnixNano())
		l.log.WarnContext(ctx, "Redis unavailable, login limits counted in this process only", "error", err)
		return 0, false
	}

	return time.Duration(millis) * time.Millisecond, true
}
