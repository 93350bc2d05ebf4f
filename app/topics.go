package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/app/backend"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/fault"
)

// ensureTopics creates and checks the topics, waiting for Kafka. Consumers and
// readiness wait for it.
func (a *App) ensureTopics(ctx context.Context) error {
	a.health.setWaiting("kafka")
	const advice = "check kafka.brokers, kafka.tls and kafka.sasl, and that the cluster is up"
	retry := func(err error) bool { return !fault.IsPermanent(err) }
	if err := a.awaitBackend(ctx, "kafka", advice, a.ensureTopicsOnce, retry); err != nil {
		return err
	}
	a.health.setStarted()
	return nil
}

func (a *App) ensureTopicsOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	specs := backend.TopicSpecs(a.settings)
	if a.settings.Kafka.CreateTopics {
		if err := a.cluster.EnsureTopics(ctx, specs); err != nil {
			return err
		}
	}

	for _, spec := range specs {
		n, err := a.cluster.Partitions(ctx, spec.Name)
		if err != nil && !a.settings.Kafka.CreateTopics {
			return fmt.Errorf("kafka.create_topics is off and %w", err)
		}
		if err != nil {
			return err
		}

		if spec.Name == event.TopicRaw {
			a.log.Info("partitions: events of an account keep their order within one of them, and as many normalizers can share the work; "+
				"kafka.partitions is for new topics only", "partitions", n, "kafka.partitions", spec.Partitions)
		}
	}

	return a.checkTopics(ctx, specs)
}

// checkTopics logs the problems of the topics. With kafka.strict, one that
// endangers acknowledged records is an error.
func (a *App) checkTopics(ctx context.Context, specs []topics.Spec) error {
	problems, err := a.cluster.CheckTopics(ctx, specs)
	if err != nil {
		return err
	}

	var unsafe []error
	for _, p := range problems {
		if p.Unsafe && a.settings.Kafka.Strict {
			unsafe = append(unsafe, errors.New(p.Message))
			continue
		}
		a.log.Warn("topic settings: "+p.Message, "topic", p.Topic, "unsafe", p.Unsafe)
	}

	if unsafe != nil {
		return fault.Permanent(fmt.Errorf("kafka.strict: %w", errors.Join(unsafe...)))
	}

	return nil
}

// keepTopics creates topics that were deleted, and adds partitions to derived topics when their source topics
// get more, while the process runs. With kafka.create_topics off it only looks for missing ones.
func (a *App) keepTopics(ctx context.Context) error {
	return a.cluster.KeepTopics(ctx, backend.TopicSpecs(a.settings), a.settings.Kafka.CreateTopics)
}

// accountPartition returns the partition of an account's new events: the messages of
// partition n of the raw topic are stored in partition n.
func (a *App) accountPartition(ctx context.Context, account string) (int, error) {
	return a.cluster.KeyPartition(ctx, event.TopicRaw, []byte(account))
}
