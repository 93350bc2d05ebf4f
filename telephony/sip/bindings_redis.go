package sip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
)

// RedisBindings stores bindings in Redis: one hash per user, and one sorted set of all bindings by
// expiry time.
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

// place is a binding's member in the sorted set. It identifies the binding's hash and field.
type place struct {
	AOR
	Contact string `json:"contact"`
}

func (b Binding) place() (string, error) {
	text, err := json.Marshal(place{b.AOR, b.Contact})
	return string(text), err
}

// expiries returns the key of the sorted set.
func (r *RedisBindings) expiries() string { return r.prefix + "sip:expiry" }

// key returns the key of a user's hash. Its separators cannot occur in an account id.
func (r *RedisBindings) key(a AOR) string {
	return r.prefix + "sip:bindings:{" + strconv.Itoa(len(a.AccountID)) + ":" + a.AccountID + ":" + a.Extension + "}"
}

// List implements Bindings.
func (r *RedisBindings) List(ctx context.Context, aor AOR) ([]Binding, error) {
	all, err := r.client.HGetAll(ctx, r.key(aor)).Result()
	if err != nil {
		return nil, away(err, "reading a user's phones")
	}
	now := time.Now()
	bindings := make([]Binding, 0, len(all))
	for _, text := range all {
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

// Put implements Bindings.
func (r *RedisBindings) Put(ctx context.Context, b Binding) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("writing a phone's registration: %w", err)
	}
	member, err := b.place()
	if err != nil {
		return fmt.Errorf("writing a phone's registration: %w", err)
	}
	_, err = r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, r.key(b.AOR), b.Contact, text)
		p.ExpireAt(ctx, r.key(b.AOR), time.Now().Add(time.Until(b.Expires)+bindingGrace+maxLife))
		p.ZAdd(ctx, r.expiries(), redis.Z{Score: float64(b.Expires.UnixMilli()), Member: member})
		return nil
	})
	return away(err, "keeping a phone's registration")
}

// maxLife is longer than any binding's remaining time.
const maxLife = 24 * time.Hour

// Remove implements Bindings.
func (r *RedisBindings) Remove(ctx context.Context, b Binding) (bool, error) {
	member, err := b.place()
	if err != nil {
		return false, fmt.Errorf("writing a phone's registration: %w", err)
	}
	removed, err := r.client.HDel(ctx, r.key(b.AOR), b.Contact).Result()
	if err != nil {
		return false, away(err, "removing a phone's registration")
	}
	if err := r.client.ZRem(ctx, r.expiries(), member).Err(); err != nil {
		return false, away(err, "removing a phone's registration")
	}
	return removed > 0, nil
}

// RemoveAccounts removes the bindings of accounts, without reporting them, and returns their number.
func (r *RedisBindings) RemoveAccounts(ctx context.Context, accountIDs []string) (removed int, err error) {
	gone := make(map[string]bool, len(accountIDs))
	for _, id := range accountIDs {
		gone[id] = true
	}
	var found []place
	members := r.client.ZScan(ctx, r.expiries(), 0, "", expireBatch).Iterator()
	for score := false; members.Next(ctx); score = !score {
		if score {
			continue // members and scores alternate
		}
		var at place
		if err := json.Unmarshal([]byte(members.Val()), &at); err != nil {
			return 0, fmt.Errorf("reading a phone's registration: %w", err)
		}
		if gone[at.AccountID] {
			found = append(found, at)
		}
	}
	if err := members.Err(); err != nil {
		return 0, away(err, "listing registrations")
	}
	for _, at := range found {
		existed, err := r.Remove(ctx, Binding{AOR: at.AOR, Contact: at.Contact})
		if err != nil {
			return removed, err
		}
		if existed {
			removed++
		}
	}
	return removed, nil
}

// Expire implements Bindings. The node that removes the member from the sorted set returns the
// binding.
func (r *RedisBindings) Expire(ctx context.Context, now time.Time) ([]Binding, error) {
	due, err := r.client.ZRangeByScore(ctx, r.expiries(), &redis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: expireBatch,
	}).Result()
	if err != nil {
		return nil, away(err, "looking for phones that have expired")
	}
	var gone []Binding
	for _, member := range due {
		b, expired, err := r.expireScript(ctx, member, now)
		if err != nil {
			return gone, err
		}
		if expired {
			gone = append(gone, b)
		}
	}
	return gone, nil
}

func (r *RedisBindings) expireScript(ctx context.Context, member string, now time.Time) (Binding, bool, error) {
	var at place
	if err := json.Unmarshal([]byte(member), &at); err != nil {
		return Binding{}, false, fmt.Errorf("reading which phone has expired: %w", err)
	}
	taken, err := r.client.ZRem(ctx, r.expiries(), member).Result()
	if err != nil || taken == 0 {
		return Binding{}, false, away(err, "taking out a phone that has expired")
	}
	text, err := r.client.HGet(ctx, r.key(at.AOR), at.Contact).Result()
	if errors.Is(err, redis.Nil) {
		return Binding{}, false, nil
	}
	if err != nil {
		return Binding{}, false, away(err, "reading a phone that has expired")
	}
	var b Binding
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return Binding{}, false, fmt.Errorf("reading a phone that has expired: %w", err)
	}
	if b.Expires.After(now) { // refreshed meanwhile
		return Binding{}, false, r.Put(ctx, b)
	}
	removed, err := r.client.HDel(ctx, r.key(b.AOR), b.Contact).Result()
	return b, removed > 0, away(err, "removing a phone that has expired")
}

// away wraps a Redis error as fault.KindUnavailable.
func away(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, fault.Unavailable(err, time.Second, "registrations are not available"))
}
