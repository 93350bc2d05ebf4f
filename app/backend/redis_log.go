package backend

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// RedisLog sends the Redis client's own log lines to log at debug level. By default the client
// writes several lines to stderr for each connection attempt; callers of Redis log its failures
// once. It applies to the whole process and must be called before a client is created.
func RedisLog(log *slog.Logger) { redis.SetLogger(redisLogger{log}) }

type redisLogger struct{ log *slog.Logger }

func (l redisLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, args...))
	}
}
