package backend

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Liveness keeps the counts of kafka.Liveness in one Redis hash for each group.
type Liveness struct {
	Client redis.UniversalClient
	Prefix string // of the keys
}

// groupLifetime is the time that the hash of a group without members is kept.
const groupLifetime = time.Minute

func (l *Liveness) key(group string) string { return l.Prefix + "members:" + group }

// Report implements kafka.Liveness.
func (l *Liveness) Report(ctx context.Context, group, member string) (map[string]int64, error) {
	var all *redis.MapStringStringCmd
	_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		if member != "" {
			p.HIncrBy(ctx, l.key(group), member, 1)
			p.Expire(ctx, l.key(group), groupLifetime)
		}
		all = p.HGetAll(ctx, l.key(group))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reporting a member of group %q: %w", group, err)
	}

	counts := make(map[string]int64, len(all.Val()))
	for name, text := range all.Val() {
		counts[name], err = strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the members of group %q: %w", group, err)
		}
	}

	return counts, nil
}

// Forget implements kafka.Liveness.
func (l *Liveness) Forget(ctx context.Context, group, member string) error {
	if err := l.Client.HDel(ctx, l.key(group), member).Err(); err != nil {
		return fmt.Errorf("removing a member of group %q: %w", group, err)
	}
	return nil
}
