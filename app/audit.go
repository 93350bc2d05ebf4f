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
func (a *App) openAudit(ctx context.Context) (err error) {
	var publisher audit.Publisher
	if a.settings.Audit.Topic {
		publisher = auditTopic{a.newProducer("audit log's producer", kafka.ProducerConfig{})}
	}

	a.audit, err = audit.New(ctx, a.settings.Audit,
		audit.Deps{DB: a.db, Publisher: publisher, Metrics: a.registry, Log: a.log})
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}

	a.lifecycle.addRunAtOnce("audit log", a.audit.Run)
	return nil
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
