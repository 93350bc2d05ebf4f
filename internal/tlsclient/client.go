package tlsclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// Client secures connections. It is safe for concurrent use.
type Client struct {
	settings Settings
	log      *slog.Logger

	mu     sync.Mutex
	config *tls.Config // nil: TLS is disabled
	stamps []fileStamp // of the files from which config was created
}

type fileStamp struct {
	modifiedAt time.Time
	size       int64
}

// NewClient reads the files; its error names the setting of an unusable file. server
// is the server's name in log lines, such as "Kafka".
func NewClient(s Settings, server string, log *slog.Logger) (*Client, error) {
	c := &Client{settings: s, log: log.With("server", server), stamps: s.stamps()}
	var err error
	c.config, err = s.Load()
	return c, err
}

// Secure returns conn after a TLS handshake with the server at address (host:port), or
// conn itself if TLS is disabled. It does not close conn on an error.
func (c *Client) Secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config := c.current()
	if config == nil {
		return conn, nil
	}

	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("address of a TLS server: %w", err)
		}
		config = config.Clone()
		config.ServerName = host
	}

	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}

	return secured, nil
}

// current returns the configuration, and reloads it after a file has changed. If the
// files cannot be used, it keeps the previous configuration.
func (c *Client) current() *tls.Config {
	if !c.settings.Enabled {
		return nil
	}

	stamps := c.settings.stamps()
	c.mu.Lock()
	defer c.mu.Unlock()

	if slices.Equal(stamps, c.stamps) {
		return c.config
	}

	// Also if loading fails: files that cannot be used are reported once, and not at each connection.
	c.stamps = stamps
	changed, err := c.settings.Load()
	if err != nil {
		c.log.Warn("reloading the TLS files failed, keeping the old ones", "error", err)
		return c.config
	}

	c.config = changed
	c.log.Info("TLS files reloaded")
	return c.config
}

// stamps returns the stamps of the configured files.
func (s Settings) stamps() []fileStamp {
	var stamps []fileStamp
	for _, name := range []string{s.CAFile, s.CertFile, s.KeyFile} {
		var stamp fileStamp
		info, err := os.Stat(name)
		if err == nil {
			stamp = fileStamp{info.ModTime(), info.Size()}
		}
		stamps = append(stamps, stamp)
	}

	return stamps
}
