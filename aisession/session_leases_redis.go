package aisession

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisSessionLeases implements SessionLeases in Redis: one sorted set per account, scored by expiry.
type RedisSessionLeases struct {
	client redis.UniversalClient
	prefix string
	script *redis.Script
}

//go:embed acquire_lease.lua
var acquireLeaseScript string

// NewRedisSessionLeases returns leases in keys with the prefix. It does not close client.
func NewRedisSessionLeases(client redis.UniversalClient, prefix string) *RedisSessionLeases {
	return &RedisSessionLeases{client: client, prefix: prefix, script: redis.NewScript(acquireLeaseScript)}
}

func (r *RedisSessionLeases) key(account string) string {
	return r.prefix + "aisession:seats:" + account
}

// Acquire implements SessionLeases.
func (r *RedisSessionLeases) Acquire(ctx context.Context, accountID, session string, max int) (bool, error) {
	now := time.Now()
	acquired, err := r.script.Run(ctx, r.client, []string{r.key(accountID)},
		now.UnixMilli(), now.Add(leaseTTL).UnixMilli(), session, max).Int()
	if err != nil {
		return false, fmt.Errorf("acquiring a session lease: %w", err)
	}
	return acquired == 1, nil
}

// Renew implements SessionLeases.
func (r *RedisSessionLeases) Renew(ctx context.Context, accountBySession map[string]string) error {
	if len(accountBySession) == 0 {
		return nil
	}

	until := float64(time.Now().Add(leaseTTL).UnixMilli())
	pipe := r.client.Pipeline()
	for session, account := range accountBySession {
		pipe.ZAdd(ctx, r.key(account), redis.Z{Score: until, Member: session})
		pipe.PExpire(ctx, r.key(account), leaseTTL)
	}

	_, err := pipe.Exec(ctx)
	if err != nil {
		return fmt.Errorf("renewing session leases: %w", err)
	}

	return nil
}

// Release implements SessionLeases.
func (r *RedisSessionLeases) Release(ctx context.Context, accountID, session string) error {
	if err := r.client.ZRem(ctx, r.key(accountID), session).Err(); err != nil {
		return fmt.Errorf("releasing a session lease: %w", err)
	}
	return nil
}
