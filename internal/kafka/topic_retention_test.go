package kafka

import (
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestRetentionIsThatOfATopicWithThePrefix(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	for _, prefix := range []string{"", "two."} {
		if err := fake.CreateTopic(prefix+"t", 1, map[string]string{configRetention: "5000"}); err != nil {
			t.Fatal(err)
		}

		settings := DefaultSettings(fake.ListenAddrs()...)
		settings.TopicPrefix = prefix
		c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		if kept, err := c.Retention(t.Context(), "t"); kept != 5*time.Second || err != nil {
			t.Errorf("with prefix %q: %v, %v", prefix, kept, err)
		}
	}
}
