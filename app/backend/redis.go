package backend

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/redisclient"
	"trunkline/settings"
)

// OpenRedis returns a client of the configured Redis, or of an embedded one. It does not
// connect yet, so an unavailable Redis is not an error here. close ends the client, and
// the embedded Redis with it.
func OpenRedis(s *settings.Settings, log *slog.Logger) (client redis.UniversalClient, close func() error, err error) {
	if !s.Redis.Embedded() {
		client, err = redisclient.New(s.Redis, s.SecretReader("redis.password"), log)
		if err != nil {
			return nil, nil, err
		}
		return client, client.Close, nil
	}

	embedded, err := startEmbeddedRedis()
	if err != nil {
		return nil, nil, err
	}

	log.Info("embedded redis: in memory, one node, lost at exit")

	client = redis.NewClient(&redis.Options{
		Addr: "embedded", Dialer: embedded.dial, ContextTimeoutEnabled: true, DisableIdentity: true,
	})
	return client, func() error {
		// After the client, which still has connections to it.
		defer embedded.close()
		return client.Close()
	}, nil
}
