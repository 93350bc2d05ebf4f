package kafka

import (
	"testing"

	"trunkline/internal/fault"
)

func TestConfigSaysWhatIsWrong(t *testing.T) {
	good := Config{Brokers: []string{"a:1"}}
	for _, test := range []struct {
		name  string
		field string
		with  func(*Config)
	}{
		{"nothing", "", func(*Config) {}},
		{"no brokers", "kafka.brokers", func(c *Config) { c.Brokers = nil }},
		{"a broker without a port", "kafka.brokers", func(c *Config) { c.Brokers = []string{"a"} }},
		{"a prefix no topic can have", "kafka.topic_prefix", func(c *Config) { c.TopicPrefix = "a/b" }},
		{"fewer replicas than none", "kafka.replication_factor", func(c *Config) { c.ReplicationFactor = -1 }},
		{"a certificate without its key", "kafka.tls", func(c *Config) { c.TLS.CertFile = "x" }},
		{"an unknown mechanism", "kafka.sasl.mechanism", func(c *Config) { c.SASL.Mechanism = "gssapi" }},
		{"a mechanism without a password", "kafka.sasl", func(c *Config) { c.SASL = SASL{Mechanism: "plain", Username: "u"} }},
		{"a whole login", "", func(c *Config) { c.SASL = SASL{Mechanism: "scram-sha-256", Username: "u", Password: "p"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := good
			test.with(&cfg)
			err := cfg.Validate()
			if test.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if f := fault.As(err); f.Kind != fault.KindInvalid || len(f.Fields) != 1 || f.Fields[0].Field != test.field {
				t.Errorf("got %v", err)
			}
		})
	}
}
