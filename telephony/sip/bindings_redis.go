package sip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// RedisBindings stores the registrations of all nodes in Redis: one hash per user, and one sorted set of all
// bindings by expiry time.
type RedisBindings struct {
	client redis.UniversalClient
	prefix string
}

// NewRedisBindings returns a store that uses keys with the prefix. It does not close client.
func NewRedisBindings(client redis.UniversalClient, prefix string) (*RedisBindings, error) {
	if client == nil {
		return nil, errors.New("sip: the bindings have no Redis client")
	}
	return &RedisBindings{client: client, prefix: prefix}, nil
}

const (
	// bindingGrace is the time by which a user's hash outlives its bindings, so that the expiry of
	// each is still reported.
	bindingGrace = 10 * time.Minute
	expireBatch  = 500
)

// expiryMember is a binding's member in the sorted set, as JSON. It identifies the binding's hash and field.
type expiryMember struct {
	AOR
	Contact string `json:"contact"`
}

// expiryMember returns b's member in the sorted set.
func (b Binding) expiryMember() (string, error) {
	text, err := json.Marshal(expiryMember{b.AOR, b.Contact})
	return string(text), err
}

// expiryKey returns the key of the sorted set.
func (r *RedisBindings) expiryKey() string { return r.prefix + "sip:expiry" }

// key returns the key of a user's hash. Its separators cannot occur in an account id.
func (r *RedisBindings) key(a AOR) string {
	return r.prefix + "sip:bindings:{" + strconv.Itoa(len(a.AccountID)) + ":" + a.AccountID + ":" + a.Extension + "}"
}

// List returns the bindings of a user that have not expired, oldest first.
func (r *RedisBindings) List(ctx context.Context, aor AOR) ([]Binding, error) {
	fields, err := r.client.HGetAll(ctx, r.key(aor)).Result()
	if err != nil {
		return nil, wrapUnavailable(err, "reading a user's phones")
	}

	now := time.Now()
	bindings := make([]Binding, 0, len(fields))
	for _, text := range fields {
		var b Binding
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			return nil, fmt.Errorf("reading a phone's registration: %w", err)
		}
		if b.Expires.After(now) {
			bindings = append(bindings, b)
		}
	}

	slices.SortFunc(bindings, func(a, b Binding) int { return a.Since.Compare(b.Since) })
	return bindings, nil
}

// Put creates b, or replaces the binding of the same user and contact.
func (r *RedisBindings) Put(ctx context.Context, b Binding) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("writing a phone's registration: %w", err)
	}

	member, err := b.expiryMember()
	if err != nil {
		return fmt.Errorf("writing a phone's registration: %w", err)
	}

	_, err = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, r.key(b.AOR), b.Contact, text)
		// The hash has the user's other bindings too, which may last longer than b.
		p.ExpireAt(ctx, r.key(b.AOR), time.Now().Add(time.Until(b.Expires)+bindingGrace+maxBindingLifetime))
		p.ZAdd(ctx, r.expiryKey(), redis.Z{Score: float64(b.Expires.UnixMilli()), Member: member})
		return nil
	})

	return wrapUnavailable(err, "keeping a phone's registration")
}

// maxBindingLifetime is longer than any binding's remaining time.
const maxBindingLifetime = 24 * time.Hour

// Remove deletes b and reports whether it existed.
func (r *RedisBindings) Remove(ctx context.Context, b Binding) (bool, error) {
	member, err := b.expiryMember()
	if err != nil {
		return false, fmt.Errorf("writing a phone's registration: %w", err)
	}

	removed, err := r.client.HDel(ctx, r.key(b.AOR), b.Contact).Result()
	if err != nil {
		return false, wrapUnavailable(err, "removing a phone's registration")
	}

	// If it fails, the member is dropped when it is due: Expire then finds no field for it.
	if err := r.client.ZRem(ctx, r.expiryKey(), member).Err(); err != nil {
		return false, wrapUnavailable(err, "removing a phone's registration")
	}

	return removed > 0, nil
}

// removeInterval is the interval at which bindings of deleted accounts are removed.
const removeInterval = 30 * time.Second

// RemoveDeleted removes the bindings of the accounts that list returns until ctx ends.
func (r *RedisBindings) RemoveDeleted(ctx context.Context, list func(context.Context) ([]string, error),
	log *slog.Logger) error {
	for range retry.Rounds(ctx, removeInterval) {
		deleted, err := list(ctx)
		if err == nil && len(deleted) > 0 {
			_, err = r.RemoveAccounts(ctx, deleted)
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "removing the registrations of deleted accounts failed, retrying", "error", err)
		}
	}

	return nil
}

// RemoveAccounts removes the bindings of accounts, without reporting them, and returns their number.
func (r *RedisBindings) RemoveAccounts(ctx context.Context, accountIDs []string) (removed int, err error) {
	accountSet := make(map[string]bool, len(accountIDs))
	for _, id := range accountIDs {
		accountSet[id] = true
	}

	var found []expiryMember
	members := r.client.ZScan(ctx, r.expiryKey(), 0, "", expireBatch).Iterator()
	for score := false; members.Next(ctx); score = !score {
		if score {
			continue // members and scores alternate
		}

		var member expiryMember
		if err := json.Unmarshal([]byte(members.Val()), &member); err != nil {
			return 0, fmt.Errorf("reading a phone's registration: %w", err)
		}
		if accountSet[member.AccountID] {
			found = append(found, member)
		}
	}

	if err := members.Err(); err != nil {
		return 0, wrapUnavailable(err, "listing registrations")
	}

	for _, member := range found {
		existed, err := r.Remove(ctx, Binding{AOR: member.AOR, Contact: member.Contact})
		if err != nil {
			return removed, err
		}

		if existed {
			removed++
		}
	}

	return removed, nil
}

// Expire deletes and returns the bindings that had expired by now. The node that removes the member from the
// sorted set returns the binding.
func (r *RedisBindings) Expire(ctx context.Context, now time.Time) ([]Binding, error) {
	due, err := r.client.ZRangeByScore(ctx, r.expiryKey(), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: expireBatch,
	}).Result()
	if err != nil {
		return nil, wrapUnavailable(err, "looking for phones that have expired")
	}

	var expiredBindings []Binding
	for _, member := range due {
		b, expired, err := r.expireMember(ctx, member, now)
		if err != nil {
			return expiredBindings, err
		}

		if expired {
			expiredBindings = append(expiredBindings, b)
		}
	}

	return expiredBindings, nil
}

// expireMember deletes and returns the binding of a member that is due. It returns false if another node does so, or
// the binding was refreshed.
func (r *RedisBindings) expireMember(ctx context.Context, member string, now time.Time) (Binding, bool, error) {
	var at expiryMember
	if err := json.Unmarshal([]byte(member), &at); err != nil {
		return Binding{}, false, fmt.Errorf("parsing an expired phone: %w", err)
	}

	removed, err := r.client.ZRem(ctx, r.expiryKey(), member).Result()
	if err != nil || removed == 0 {
		return Binding{}, false, wrapUnavailable(err, "removing an expired phone")
	}

	b, expired, err := r.takeExpired(ctx, at, now)
	if fault.KindOf(err) == fault.KindUnavailable {
		// So that the next look reports it, also where ctx has ended. A refresh has set a time of its own.
		back := redis.Z{Score: float64(now.UnixMilli()), Member: member}
		err = errors.Join(err, r.client.ZAddNX(context.WithoutCancel(ctx), r.expiryKey(), back).Err())
	}

	return b, expired, err
}

// takeExpired deletes and returns a binding whose member this node has removed, unless it was refreshed meanwhile.
func (r *RedisBindings) takeExpired(ctx context.Context, at expiryMember, now time.Time) (Binding, bool, error) {
	text, err := r.client.HGet(ctx, r.key(at.AOR), at.Contact).Result()
	if errors.Is(err, redis.Nil) {
		return Binding{}, false, nil
	}
	if err != nil {
		return Binding{}, false, wrapUnavailable(err, "reading a phone that has expired")
	}

	var b Binding
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return Binding{}, false, fmt.Errorf("reading a phone that has expired: %w", err)
	}
	if b.Expires.After(now) { // refreshed meanwhile
		return Binding{}, false, r.Put(ctx, b)
	}

	removed, err := r.client.HDel(ctx, r.key(b.AOR), b.Contact).Result()
	return b, removed > 0, wrapUnavailable(err, "removing a phone that has expired")
}

// wrapUnavailable wraps a Redis error as fault.KindUnavailable.
func wrapUnavailable(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, fault.Unavailable(err, time.Second, "registrations are not available"))
}
