package kafka

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const configRetention = "retention.ms"

// Retention returns how long a topic keeps a record, at least; -1 for ever.
func (c *Cluster) Retention(ctx context.Context, topic string) (time.Duration, error) {
	configs, err := c.topicConfigs(ctx, []string{topic})
	if err != nil {
		return 0, fmt.Errorf("reading the retention of %s: %w", topic, err)
	}

	text := configs[topic][configRetention]
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the retention of %s: %q is no number", topic, text)
	}

	if ms < 0 {
		return -1, nil
	}

	return time.Duration(ms) * time.Millisecond, nil
}
