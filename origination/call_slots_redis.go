package origination

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed call_slots.lua
var slotsScript string

// RedisSlots implements Slots for all nodes. Slots expire by Redis's clock.
type RedisSlots struct {
	client redis.UniversalClient
	prefix string
	script *redis.Script
	ttl    time.Duration
}

// NewRedisSlots returns slots that use keys with the prefix. It does not close client.
func NewRedisSlots(client redis.UniversalClient, prefix string) *RedisSlots {
	return &RedisSlots{client: client, prefix: prefix, script: redis.NewScript(slotsScript), ttl: slotTTL}
}

// redisKeys returns the Redis keys of a call slot; both hash to the same Redis Cluster slot.
func (r *RedisSlots) redisKeys(slot Slot) []string {
	account := r.prefix + "calls:{" + slot.AccountID + "}"
	return []string{account + ":user:" + slot.UserID, account}
}

// Acquire implements Slots.
func (r *RedisSlots) Acquire(ctx context.Context, slot Slot, userMax, accountMax int) (Reason, error) {
	fullIndex, err := r.script.Run(ctx, r.client, r.redisKeys(slot), r.ttl.Milliseconds(), slot.CallID, userMax,
		accountMax).Int()
	if err != nil {
		return "", fmt.Errorf("acquiring a call slot: %w", err)
	}
	return []Reason{"", ReasonUserCalls, ReasonAccountCalls}[fullIndex], nil
}

// Renew implements Slots. It also takes slots that have expired.
func (r *RedisSlots) Renew(ctx context.Context, slots []Slot) error {
	now, err := r.client.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("renewing call slots: %w", err)
	}

	until := float64(now.Add(r.ttl).UnixMilli())
	pipe := r.client.Pipeline()
	for _, slot := range slots {
		for _, key := range r.redisKeys(slot) {
			pipe.ZAdd(ctx, key, redis.Z{Score: until, Member: slot.CallID})
			pipe.PExpire(ctx, key, r.ttl)
		}
	}

	_, err = pipe.Exec(ctx)
	if err != nil {
		return fmt.Errorf("renewing call slots: %w", err)
	}

	return nil
}

// Release implements Slots.
func (r *RedisSlots) Release(ctx context.Context, slots []Slot) error {
	pipe := r.client.Pipeline()
	for _, slot := range slots {
		for _, key := range r.redisKeys(slot) {
			pipe.ZRem(ctx, key, slot.CallID)
		}
	}

	_, err := pipe.Exec(ctx)
	if err != nil {
		return fmt.Errorf("releasing call slots: %w", err)
	}

	return nil
}
