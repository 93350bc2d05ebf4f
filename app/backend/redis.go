package backend

import (
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"trunkline/config/settings"
)

// Redis returns a client of the Redis that the settings name, or of an embedded
// one. It does not connect yet: a Redis that is away is not an error here.
// close ends the client, and the embedded Redis with it.
func Redis(s *settings.Settings, log *slog.Logger) (client *redis.Client, close func() error, err error) {
	if s.Redis.Address == "" {
		embedded, err := startEmbeddedRedis()
		if err != nil {
			return nil, nil, err
		}
		log.Info("embedded redis: in memory, one node, lost at exit")
		client = redis.NewClient(&redis.Options{
			Addr: "embedded", Dialer: embedded.dial, ContextTimeoutEnabled: true, DisableIdentity: true,
		})
		return client, func() error {
			defer embedded.close()
			return client.Close()
		}, nil
	}
	tlsConfig, err := s.Redis.TLS.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("redis: %w", err)
	}
	log.Info("redis", "address", s.Redis.Address, "tls", s.Redis.TLS.Enabled)
	client = redis.NewClient(&redis.Options{
		Addr:                  s.Redis.Address,
		Username:              s.Redis.Username,
		Password:              string(s.Redis.Password),
		DB:                    s.Redis.DB,
		TLSConfig:             tlsConfig,
		ContextTimeoutEnabled: true,
	})
	return client, client.Close, nil
}
