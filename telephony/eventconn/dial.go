package eventconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// Dial connects and calls handshake, whose reads and writes fail after the end of ctx. It counts failed
// connections.
func (c *Config) Dial(ctx context.Context, handshake func(net.Conn) error) (net.Conn, error) {
	nc, err := c.connect(ctx, handshake)
	if err != nil {
		c.countEnd(err)
		return nil, fmt.Errorf("connecting to the %s: %w", c.Name, err)
	}
	return nc, nil
}

func (c *Config) connect(ctx context.Context, handshake func(net.Conn) error) (net.Conn, error) {
	nc, err := c.dialTransport(ctx)
	if err != nil {
		return nil, err
	}

	interrupt := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	err = handshake(nc)
	// ctx may have ended after the last read: its deadline would end the reader.
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}

	return nc, nil
}

func (c *Config) dialTransport(ctx context.Context) (net.Conn, error) {
	if c.TLS == nil {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", c.Address)
	}
	dialer := tls.Dialer{Config: c.TLS}
	return dialer.DialContext(ctx, "tcp", c.Address)
}
