package redisclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/tlsclient"
)

const dialTimeout = 5 * time.Second

// New returns a client of the Redis in s, which is not the embedded one. It does not
// connect yet. currentPassword returns the password as it is now, for each connection that is
// opened; nil: that of s does not change. Returns an error for invalid TLS files.
func New(s Settings, currentPassword func() (string, error), log *slog.Logger) (redis.UniversalClient, error) {
	tlsClient, err := tlsclient.NewClient(s.TLS, "Redis", log)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}

	options := &redis.UniversalOptions{
		Username: s.Username, Password: string(s.Password), DB: s.DB,
		Dialer: newDialer(tlsClient), ContextTimeoutEnabled: true,
	}

	if currentPassword != nil {
		options.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := currentPassword()
			if err != nil {
				password = string(s.Password) // its file is being replaced
			}
			return s.Username, password, nil
		}
	}

	kind := "server"
	switch {
	case len(s.ClusterAddresses) > 0:
		kind, options.Addrs, options.IsClusterMode = "cluster", s.ClusterAddresses, true
	case len(s.Sentinel.Addresses) > 0:
		kind, options.Addrs, options.MasterName = "sentinel", s.Sentinel.Addresses, s.Sentinel.Master
		options.SentinelUsername, options.SentinelPassword = s.Sentinel.Username, string(s.Sentinel.Password)
	default:
		options.Addrs = []string{s.Address}
	}

	log.Info("redis", "kind", kind, "address", strings.Join(options.Addrs, ","), "tls", s.TLS.Enabled)
	return redis.NewUniversalClient(options), nil
}

// newDialer opens the connections to servers, nodes and Sentinels.
func newDialer(tlsClient *tlsclient.Client) func(context.Context, string, string) (net.Conn, error) {
	netDialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()

		conn, err := netDialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}

		secured, err := tlsClient.Secure(ctx, conn, address)
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}

		return secured, nil
	}
}
