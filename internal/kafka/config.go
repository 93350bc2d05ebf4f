package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"
	"trunkline/internal/fault"
)

// Config holds the addresses of a Kafka cluster and how to connect to it.
type Config struct {
	Brokers           []string // host:port, one answering is enough to find the others
	TopicPrefix       string   // put before every topic and group name
	ClientID          string   // client id in the brokers' logs and quotas; default "trunkline"
	TLS               TLS
	SASL              SASL
	ReplicationFactor int // of topics we create; 0: three, or as many as there are brokers

	// Compression of produced batches: none (as ""), lz4 or zstd.
	Compression string

	// Dial opens connections in place of the network: the embedded broker's.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Liveness finds dead members of consumer groups; nil: Kafka's session
	// timeout does.
	Liveness Liveness

	// WriteFault returns why an embedded broker has stopped taking writes, nil
	// while it takes them; nil function: it is not embedded.
	WriteFault func() error
}

// TLS configures the encryption of connections to brokers. Files are PEM.
type TLS struct {
	Enabled           bool
	CAFile            string // empty: the system's
	CertFile, KeyFile string // of the client, both or neither
}

// SASL configures authentication to brokers. An empty Mechanism disables it.
type SASL struct {
	Mechanism          string // plain, scram-sha-256, scram-sha-512
	Username, Password string
	PasswordFile       string // in place of Password; read for each connection
}

const dialTimeout = 5 * time.Second

var legalPrefix = regexp.MustCompile(`^[A-Za-z0-9._-]{0,100}$`)

// Validate returns fault.KindInvalid with every field that is not valid.
func (c *Config) Validate() error {
	var fields []fault.Field
	bad := func(field, format string, args ...any) {
		fields = append(fields, fault.Field{Field: "kafka." + field, Code: "invalid", Message: fmt.Sprintf(format, args...)})
	}
	if len(c.Brokers) == 0 {
		bad("brokers", "at least one broker address is needed")
	}
	for _, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			bad("brokers", "%q is not host:port", b)
		}
	}
	if !legalPrefix.MatchString(c.TopicPrefix) {
		bad("topic_prefix", "only letters, digits, '.', '_' and '-', at most 100")
	}
	if c.ReplicationFactor < 0 {
		bad("replication_factor", "cannot be negative")
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		bad("tls", "cert_file and key_file come together")
	}
	switch c.SASL.Mechanism {
	case "":
	case "plain", "scram-sha-256", "scram-sha-512":
		if c.SASL.Username == "" || c.SASL.Password == "" && c.SASL.PasswordFile == "" {
			bad("sasl", "username and password are needed")
		}
	default:
		bad("sasl.mechanism", "%q is not one of plain, scram-sha-256, scram-sha-512", c.SASL.Mechanism)
	}
	if _, known := codecs[c.Compression]; !known {
		bad("compression", "%q is not one of none, lz4, zstd", c.Compression)
	}
	if fields != nil {
		return fault.Invalid("the Kafka settings are not valid", fields...)
	}
	return nil
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

// load reads the files that TLS names. It returns nil when TLS is off.
func (t *TLS) load() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the Kafka CA: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.InvalidField("kafka.tls.ca_file", "invalid", "no certificate in "+t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the Kafka client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}
