package app

import (
	"context"
	"fmt"
	"time"

	"trunkline/internal/kafka"
)

const topicsRetry = 2 * time.Second

// ensureTopics makes the topics, or waits until Kafka is there. Consumers and
// readiness wait for it.
func (a *App) ensureTopics(ctx context.Context) error {
	waiting := false
	for {
		err := a.tryTopics(ctx)
		if err == nil {
			if waiting {
				a.log.Info("kafka is there")
			}
			a.health.start()
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !waiting {
			a.log.Warn("waiting for kafka: check kafka.brokers, and that the cluster is up", "error", err)
			waiting = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(topicsRetry):
		}
	}
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
