package backend

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// RedisLog takes the Redis client's own lines, which it writes to stderr, a few
// for each attempt to connect. They are for who debugs: whoever asks Redis says
// what is wrong, once. It is for the whole process, and is called before any
// client is made.
func RedisLog(log *slog.Logger) { redis.SetLogger(redisLogger{log}) }

type redisLogger struct{ log *slog.Logger }

func (l redisLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, args...))
	}
}
