package kafka

import (
	"errors"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

func TestInvalidConfigIsRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		want string // begins the problem; empty: none
		with func(*Config)
	}{
		{"nothing", "", func(*Config) {}},
		{"a broker without a port", "kafka.brokers: ", func(c *Config) { c.Brokers = []string{"a"} }},
		{"a prefix no topic can have", "kafka.topic_prefix: ", func(c *Config) { c.TopicPrefix = "a/b" }},
		{"fewer replicas than none", "kafka.replication_factor: ", func(c *Config) { c.ReplicationFactor = -1 }},
		{"a certificate without its key", "kafka.tls.key_file: ", func(c *Config) { c.TLS.Enabled, c.TLS.CertFile = true, "x" }},
		{"an unknown compression", "kafka.compression: ", func(c *Config) { c.Compression = "gzip" }},
		{"an unknown mechanism", "kafka.sasl.mechanism: ", func(c *Config) { c.SASL = SASL{Mechanism: "gssapi", Username: "u", Password: "p"} }},
		{"a mechanism without a password", "kafka.sasl.password: ", func(c *Config) { c.SASL = SASL{Mechanism: "plain", Username: "u"} }},
		{"a whole login", "", func(c *Config) { c.SASL = SASL{Mechanism: "scram-sha-256", Username: "u", Password: "p"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{Settings: DefaultSettings("a:1")}
			test.with(&cfg)
			err := cfg.Validate()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var problems setting.Problems
			if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := (&Config{Settings: DefaultSettings()}).Validate(); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("no brokers: %v", err)
	}
}
