package backend

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"

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
	tlsConfig, err := clientTLS(&s.Redis.TLS)
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

// clientTLS returns nil when TLS is off.
func clientTLS(t *settings.ClientTLS) (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		text, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading tls.ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading tls.ca_file: %s holds no certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading tls.cert_file and tls.key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}
