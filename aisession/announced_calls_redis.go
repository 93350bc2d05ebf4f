package aisession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/config/aiprovider"
)

// RedisAnnouncements stores announced calls for all nodes.
type RedisAnnouncements struct {
	client redis.UniversalClient
	prefix string
}

// NewRedisAnnouncements returns announcements in keys with the prefix. It does not close client.
func NewRedisAnnouncements(client redis.UniversalClient, prefix string) *RedisAnnouncements {
	return &RedisAnnouncements{client: client, prefix: prefix}
}

func (r *RedisAnnouncements) key(uuid string) string { return r.prefix + "aisession:announced:" + uuid }

// Put creates an announcement and returns false if the UUID exists.
func (r *RedisAnnouncements) Put(ctx context.Context, a aiprovider.Announcement, ttl time.Duration) (bool, error) {
	value, err := json.Marshal(a)
	if err != nil {
		return false, fmt.Errorf("announcing a call: %w", err)
	}

	err = r.client.SetArgs(ctx, r.key(a.UUID), value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("announcing a call: %w", err)
	}

	return true, nil
}

// Take deletes and returns an announcement. It returns false if there is none.
func (r *RedisAnnouncements) Take(ctx context.Context, uuid string) (a aiprovider.Announcement, found bool, err error) {
	value, err := r.client.GetDel(ctx, r.key(uuid)).Bytes()
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
