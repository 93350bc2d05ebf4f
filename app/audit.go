package app

import (
	"context"
	"encoding/json"
	"fmt"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/internal/kafka"
)

// openAudit opens the audit log, which ends after all parts that write to it.
func openAudit(ctx context.Context, b *base) (*audit.Log, error) {
	var publisher audit.Publisher
	if b.settings.Audit.Topic {
		publisher = auditTopic{b.newProducer("audit log's producer", kafka.ProducerConfig{})}
	}

	l, err := audit.New(ctx, b.settings.Audit,
		audit.Deps{DB: b.db, Publisher: publisher, Metrics: b.registry, Log: b.log})
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}

	b.lifecycle.addRunAtOnce("audit log", l.Run)
	return l, nil
}

// auditTopic writes entries of the audit log to its topic.
type auditTopic struct{ producer *kafka.Producer }

// Publish implements audit.Publisher.
func (t auditTopic) Publish(ctx context.Context, entries []audit.ChainEntry) error {
	records := make([]kafka.Record, len(entries))
	for i, e := range entries {
		value, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encoding an audit entry: %w", err)
		}
		records[i] = kafka.Record{Topic: event.TopicAudit, Key: []byte(e.AccountID), Value: value}
	}
	return t.producer.Produce(ctx, records...)
}
