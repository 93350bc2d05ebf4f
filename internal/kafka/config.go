package kafka

import (
	"context"
	"net"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// Config is the settings of a Kafka cluster and what wiring adds.
type Config struct {
	Settings
	ClientID string // client id in the brokers' logs and quotas; default "trunkline"

	// Dial opens connections in place of the network: the embedded broker's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Liveness finds dead members of consumer groups; nil: Kafka's session
	// timeout does.
	Liveness Liveness

	// WriteFault returns why an embedded broker has stopped taking writes, nil
	// while it takes them; nil function: it is not embedded.
	WriteFault func() error
}

const dialTimeout = 5 * time.Second

// Validate returns the problems of the settings, or fault.KindInvalid where no
// broker is named.
func (c *Config) Validate() error {
	if len(c.Brokers) == 0 {
		return fault.InvalidField("kafka.brokers", "invalid", "at least one broker address is needed")
	}
	return setting.Validate("kafka", c.Settings)
}

func (c *Config) clientIDOrDefault() string {
	if c.ClientID == "" {
		return "trunkline"
	}
	return c.ClientID
}

func (c *Config) dialFunc() func(context.Context, string, string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial
	}
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return d.DialContext
}
