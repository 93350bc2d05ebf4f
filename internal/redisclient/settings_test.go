package redisclient_test

import (
	"strings"
	"testing"

	"trunkline/internal/redisclient"
	"trunkline/internal/setting"
)

func TestInvalidSettingsAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		want string // begins the problem; empty: none
		s    redisclient.Settings
	}{
		{"nothing", "", redisclient.Settings{}},
		{"a URL", "redis.address: want host:port", redisclient.Settings{Address: "redis://x"}},
		{"a node without a port", "redis.cluster_addresses: want host:port",
			redisclient.Settings{ClusterAddresses: []string{"a:1", "b"}}},
		{"a server and a cluster", "redis.cluster_addresses: redis.address",
			redisclient.Settings{Address: "a:1", ClusterAddresses: []string{"b:1"}}},
		{"a server and Sentinels", "redis.sentinel.addresses: redis.address",
			redisclient.Settings{Address: "a:1",
				Sentinel: redisclient.Sentinel{Addresses: []string{"b:1"}, Master: "m"}}},
		{"a database of a cluster", "redis.db: a Redis Cluster",
			redisclient.Settings{ClusterAddresses: []string{"b:1"}, DB: 1}},
		{"a negative database", "redis.db: must not be negative", redisclient.Settings{DB: -1}},
		{"Sentinels without a master", "redis.sentinel.master: ",
			redisclient.Settings{Sentinel: redisclient.Sentinel{Addresses: []string{"b:1"}}}},
		{"a master without Sentinels", "redis.sentinel.addresses: ",
			redisclient.Settings{Sentinel: redisclient.Sentinel{Master: "m"}}},
		{"Sentinels", "",
			redisclient.Settings{Sentinel: redisclient.Sentinel{Addresses: []string{"b:1"}, Master: "m", Username: "u",
				Password: "p"}}},
	} {
		err := setting.Validate("redis", test.s)
		if got := ""; err != nil {
			got = err.Error()
			if test.want == "" || !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("%s: %s", test.name, got)
			}
		} else if test.want != "" {
			t.Errorf("%s: taken", test.name)
		}
	}
}
