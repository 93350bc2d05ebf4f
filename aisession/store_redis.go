package aisession

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/config/aiprovider"
)

// RedisStore stores announced calls and session leases in Redis.
type RedisStore struct {
	client redis.UniversalClient
	prefix string
	take   *redis.Script
}

//go:embed take.lua
var takeScript string

// NewRedisStore returns a store that uses keys with the prefix. It does not close client.
func NewRedisStore(client redis.UniversalClient, prefix string) *RedisStore {
	return &RedisStore{client: client, prefix: prefix, take: redis.NewScript(takeScript)}
}

func (r *RedisStore) announcedKey(uuid string) string {
	return r.prefix + "aisession:announced:" + uuid
}
func (r *RedisStore) leasesKey(account string) string { return r.prefix + "aisession:seats:" + account }

// RedisAnnouncements implements Announcements in a RedisStore.
type RedisAnnouncements struct{ *RedisStore }

// Put implements Announcements.
func (r RedisAnnouncements) Put(ctx context.Context, a aiprovider.Announcement, life time.Duration) (bool, error) {
	value, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("announcing a call: %w", err)
	}
	err = r.client.SetArgs(ctx, r.announcedKey(a.UUID), value, redis.SetArgs{Mode: "NX", TTL: life}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("announcing a call: %w", err)
	}
	return true, nil
}

// Take implements Announcements.
func (r RedisAnnouncements) Take(ctx context.Context, uuid string) (a aiprovider.Announcement, found bool, err error) {
	value, err := r.client.GetDel(ctx, r.announcedKey(uuid)).Bytes()
	if errors.Is(err, redis.Nil) {
		return a, false, nil
	}
	if err == nil {
		err = json.Unmarshal(value, &a)
	}
	if err != nil {
		return a, false, fmt.Errorf("looking up an announced call: %w", err)
	}
	return a, true, nil
}

// RedisSessionLeases implements SessionLeases in a RedisStore: one sorted set per account, scored by
// expiry.
type RedisSessionLeases struct{ *RedisStore }

// Acquire implements SessionLeases.
func (r RedisSessionLeases) Acquire(ctx context.Context, accountID, session string, max int) (bool, error) {
	now := time.Now()
	taken, err := r.take.Run(ctx, r.client, []string{r.leasesKey(accountID)},
		now.UnixMilli(), now.Add(leaseTTL).UnixMilli(), session, max).Int()
	if err != nil {
		return false, fmt.Errorf("taking a place: %w", err)
	}
	return taken == 1, nil
}

// Renew implements SessionLeases.
func (r RedisSessionLeases) Renew(ctx context.Context, accounts map[string]string) error {
	if len(accounts) == 0 {
		return nil
	}
	until := float64(time.Now().Add(leaseTTL).UnixMilli())
	pipe := r.client.Pipeline()
	for session, account := range accounts {
		pipe.ZAdd(ctx, r.leasesKey(account), redis.Z{Score: until, Member: session})
		pipe.PExpire(ctx, r.leasesKey(account), leaseTTL)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("renewing places: %w", err)
	}
	return nil
}

// Release implements SessionLeases.
func (r RedisSessionLeases) Release(ctx context.Context, accountID, session string) error {
	if err := r.client.ZRem(ctx, r.leasesKey(accountID), session).Err(); err != nil {
		return fmt.Errorf("freeing a place: %w", err)
	}
	return nil
}
