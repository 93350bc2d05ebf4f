package origination

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed slots.lua
var slotsScript string

// RedisSlots implements Slots for all nodes. Expiry is on the clock of Redis.
type RedisSlots struct {
	client redis.UniversalClient
	prefix string
	script *redis.Script
	life   time.Duration
}

// NewRedisSlots returns slots that use keys with the prefix. It does not close client.
func NewRedisSlots(client redis.UniversalClient, prefix string) *RedisSlots {
	return &RedisSlots{client: client, prefix: prefix, script: redis.NewScript(slotsScript), life: slotLife}
}

// keys returns the keys of a slot, which are in one slot of a Redis Cluster.
func (r *RedisSlots) keys(slot Slot) []string {
	account := r.prefix + "calls:{" + slot.AccountID + "}"
	return []string{account + ":user:" + slot.UserID, account}
}

// Take implements Slots.
func (r *RedisSlots) Take(ctx context.Context, slot Slot, userMax, accountMax int) (Reason, error) {
	full, err := r.script.Run(ctx, r.client, r.keys(slot), r.life.Milliseconds(), slot.CallID, userMax, accountMax).Int()
	if err != nil {
		return "", fmt.Errorf("counting a call: %w", err)
	}
	return []Reason{"", ReasonUserCalls, ReasonAccountCalls}[full], nil
}

// Renew implements Slots. It also takes slots that have expired.
func (r *RedisSlots) Renew(ctx context.Context, slots []Slot) error {
	now, err := r.client.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("renewing calls: %w", err)
	}
	until := float64(now.Add(r.life).UnixMilli())
	pipe := r.client.Pipeline()
	for _, slot := range slots {
		for _, key := range r.keys(slot) {
			pipe.ZAdd(ctx, key, redis.Z{Score: until, Member: slot.CallID})
			pipe.PExpire(ctx, key, r.life)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("renewing calls: %w", err)
	}
	return nil
}

// Release implements Slots.
func (r *RedisSlots) Release(ctx context.Context, slots []Slot) error {
	pipe := r.client.Pipeline()
	for _, slot := range slots {
		for _, key := range r.keys(slot) {
			pipe.ZRem(ctx, key, slot.CallID)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("releasing calls: %w", err)
	}
	return nil
}
