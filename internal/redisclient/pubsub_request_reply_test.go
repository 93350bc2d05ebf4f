package redisclient_test

import (
	"testing"

	"trunkline/internal/redisclient"
	"trunkline/internal/testservice"
)

// A node of a cluster knows only the subscribers of its own, which are at the master of the channel's slot.
func TestEachQuestionCountsAllListenersOfACluster(t *testing.T) {
	client := open(t, redisclient.Settings{ClusterAddresses: testservice.RedisCluster(t)[:1]})
	prefix := testservice.Prefix(t)
	asking, err := redisclient.NewNodeQuestion(t.Context(), client, prefix+"replies:")
	if err != nil {
		t.Fatal(err)
	}
	defer asking.Close()

	for _, channel := range []string{"a", "b", "c", "d"} {
		heard := client.Subscribe(t.Context(), prefix+channel)
		defer func() { _ = heard.Close() }()
		if _, err := heard.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}

		for range 6 {
			listeners, err := asking.Publish(t.Context(), prefix+channel, "?")
			if listeners != 1 || err != nil {
				t.Errorf("channel %s has %d listeners, want 1: %v", channel, listeners, err)
			}
		}
	}
}
