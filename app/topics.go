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
func (b *base) ensureTopics(ctx context.Context) error {
	b.health.setWaiting("kafka")
	const advice = "check kafka.brokers, kafka.tls and kafka.sasl, and that the cluster is up"
	retry := func(err error) bool { return !fault.IsPermanent(err) }
	if err := b.awaitBackend(ctx, "kafka", advice, b.ensureTopicsOnce, retry); err != nil {
		return err
	}
	b.health.setStarted()
	return nil
}

func (b *base) ensureTopicsOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	specs := backend.TopicSpecs(b.settings)
	if b.settings.Kafka.CreateTopics {
		if err := b.cluster.EnsureTopics(ctx, specs); err != nil {
			return err
		}
	}

	for _, spec := range specs {
		n, err := b.cluster.Partitions(ctx, spec.Name)
		if err != nil && !b.settings.Kafka.CreateTopics {
			return fmt.Errorf("kafka.create_topics is off and %w", err)
		}
		if err != nil {
			return err
		}

		if spec.Name == event.TopicRaw {
			b.log.Info("partitions: events of an account keep their order within one of them, and as many normalizers can share the work; "+
				"kafka.partitions is for new topics only", "partitions", n, "kafka.partitions", spec.Partitions)
		}
	}

	return b.checkTopics(ctx, specs)
}

// checkTopics logs the problems of the topics. With kafka.strict, one that
// endangers acknowledged records is an error.
func (b *base) checkTopics(ctx context.Context, specs []topics.Spec) error {
	problems, err := b.cluster.CheckTopics(ctx, specs)
	if err != nil {
		return err
	}

	var unsafe []error
	for _, p := range problems {
		if p.Unsafe && b.settings.Kafka.Strict {
			unsafe = append(unsafe, errors.New(p.Message))
			continue
		}
		b.log.Warn("topic settings: "+p.Message, "topic", p.Topic, "unsafe", p.Unsafe)
	}

	if unsafe != nil {
		return fault.Permanent(fmt.Errorf("kafka.strict: %w", errors.Join(unsafe...)))
	}

	return nil
}

// keepTopics creates topics that were deleted, and adds partitions to derived topics when their source topics
// get more, while the process runs. With kafka.create_topics off it only looks for missing ones.
func (b *base) keepTopics(ctx context.Context) error {
	return b.cluster.KeepTopics(ctx, backend.TopicSpecs(b.settings), b.settings.Kafka.CreateTopics)
}

// accountPartition returns the partition of an account's new events: the messages of
// partition n of the raw topic are stored in partition n.
func (b *base) accountPartition(ctx context.Context, account string) (int, error) {
	return b.cluster.KeyPartition(ctx, event.TopicRaw, []byte(account))
}
