package app

import (
	"context"
	"fmt"
	"time"

	"trunkline/internal/kafka"
)

// ensureTopics makes the topics, or waits until Kafka is there. Consumers and
// readiness wait for it.
func (a *App) ensureTopics(ctx context.Context) error {
	a.health.wait("kafka")
	const mend = "check kafka.brokers, kafka.tls and kafka.sasl, and that the cluster is up"
	if err := a.await(ctx, "kafka", mend, a.tryTopics, func(error) bool { return true }); err != nil {
		return err
	}
	a.health.start()
	return nil
}

func (a *App) tryTopics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	specs := kafka.Specs(a.settings.Kafka.Partitions)
	if a.settings.Kafka.CreateTopics {
		return a.cluster.EnsureTopics(ctx, specs)
	}
	warnings, err := a.cluster.CheckTopics(ctx, specs)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		a.log.Warn("topics: " + warning)
	}
	for _, spec := range specs {
		if _, err := a.cluster.Partitions(ctx, spec.Name); err != nil {
			return fmt.Errorf("kafka.create_topics is off and %w", err)
		}
	}
	return nil
}
