package settings

import (
	"strings"
	"testing"
)

func TestEverySettingHasOneNameAndOneVariableAndSaysWhatItIs(t *testing.T) {
	variables := make(map[string]string)
	for _, l := range newTree(Default()).leaves() {
		if other, taken := variables[l.envName()]; taken {
			t.Errorf("%s and %s share %s", l.key, other, l.envName())
		}

		variables[l.envName()] = l.key
		if l.doc == "" || strings.ToLower(l.key) != l.key {
			t.Errorf("%s: doc %q", l.key, l.doc)
		}
	}
}

func TestNamesThatMustNotDrift(t *testing.T) {
	var keys []string
	for _, l := range newTree(Default()).leaves() {
		keys = append(keys, l.key)
	}

	for _, l := range newTree(Default()).lists() {
		keys = append(keys, l.key)
	}

	all := " " + strings.Join(keys, " ") + " "
	for _, key := range []string{
		"listen", "metrics_listen", "data_dir", "tls.mode", "tls.cert_file", "tls.key_file", "kafka.brokers",
		"kafka.topic_prefix", "kafka.partitions", "redis.address", "database.url", "master_key", "roles",
		"drain_timeout", "auth.access_ttl", "auth.events_ttl", "fanout.gather_window", "origination.driver",
		"ai_provider.allow_networks",
		"feeds", "feed.spool_bytes",
	} {
		if !strings.Contains(all, " "+key+" ") {
			t.Errorf("there is no %s", key)
		}
	}
}
