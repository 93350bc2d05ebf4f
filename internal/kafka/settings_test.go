package kafka

import (
	"errors"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/kafka/credentials"
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
		{"a certificate without its key", "kafka.tls.key_file: ",
			func(c *Config) { c.TLS.Enabled, c.TLS.CertFile = true, "x" }},
		{"an unknown compression", "kafka.compression: ", func(c *Config) { c.Compression = "gzip" }},
		{"an unknown mechanism", "kafka.sasl.mechanism: ",
			func(c *Config) { c.SASL = credentials.Settings{Mechanism: "gssapi", Username: "u", Password: "p"} }},
		{"a mechanism without a password", "kafka.sasl.password: ",
			func(c *Config) { c.SASL = credentials.Settings{Mechanism: "plain", Username: "u"} }},
		{"a token without a source", "kafka.sasl.oauth.token_url: ",
			func(c *Config) { c.SASL = credentials.Settings{Mechanism: "oauthbearer"} }},
		{"a token of two sources", "kafka.sasl.oauth.token_file: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenFile: "x", TokenURL: "https://idp.example/token", ClientID: "c"}}
		}},
		{"a client secret in the clear", "kafka.sasl.oauth.token_url: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenURL: "http://idp.example/token", ClientID: "c"}}
		}},
		{"a token endpoint without a client", "kafka.sasl.oauth.client_id: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenURL: "https://idp.example/token"}}
		}},
		{"a token file with a client", "kafka.sasl.oauth.token_url: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenFile: "x", Scopes: []string{"kafka"}}}
		}},
		{"a parameter without a value", "kafka.sasl.oauth.parameters: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenURL: "https://idp.example/token", ClientID: "c",
					Parameters: []string{"audience"}}}
		}},
		{"an extension that would be the token", "kafka.sasl.oauth.extensions: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenFile: "x", Extensions: []string{"auth=Bearer"}}}
		}},
		{"a token for a password", "kafka.sasl.mechanism: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "plain", Username: "u", Password: "p",
				OAuth: credentials.OAuth{TokenFile: "x"}}
		}},
		{"a user with a token", "kafka.sasl.mechanism: ", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer", Username: "u",
				OAuth: credentials.OAuth{TokenFile: "x"}}
		}},
		{"a region without MSK", "kafka.sasl.aws_region: ", func(c *Config) { c.SASL.AWSRegion = "eu-central-1" }},
		{"MSK in the clear", "kafka.tls.enabled: ", func(c *Config) { c.SASL.Mechanism = "aws-msk-iam" }},
		{"a whole token endpoint", "", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "oauthbearer",
				OAuth: credentials.OAuth{TokenURL: "https://idp.example/token", ClientID: "c", ClientSecret: "s",
					Scopes: []string{"kafka"}, Parameters: []string{"audience=kafka"},
					Extensions: []string{"logicalCluster=lkc-1"}}}
		}},
		{"a whole login", "", func(c *Config) {
			c.SASL = credentials.Settings{Mechanism: "scram-sha-256", Username: "u", Password: "p"}
		}},
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
