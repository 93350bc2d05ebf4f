package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/app/backend"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
	"trunkline/recording"
)

// buildRecordings builds the recording service.
func (a *App) buildRecordings(ctx context.Context, deps *api.Deps) error {
	store, closeStore, err := backend.Recordings(a.settings, a.log)
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	a.life.closes("recordings' store", func(context.Context) error { return closeStore() })
	recordings, err := recording.New(ctx, a.settings.Recordings, recording.Deps{
		DB: a.db, Store: store, Keys: a.configs, Audit: a.audit, Metrics: a.registry, Log: a.log, Tracer: a.tracer, CheckDisk: a.checkDisk,
		Publisher: ownEvents{a.newProducer("recordings' producer", kafka.ProducerConfig{}), "recordings", a.tracer},
	})
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	a.life.runs("recordings", recordings.Run)
	deps.Encryption, deps.Recordings = a.configs, recordings
	a.purged.Recordings, a.purged.Encryption = recordings, a.configs
	return nil
}

// ownEvents produces Trunkline's own events to the raw topic, from which they reach the
// channel.
type ownEvents struct {
	producer *kafka.Producer
	source   string
	tracer   *tracing.Tracer
}

// Publish implements recording.Publisher. An account's events keep their order.
func (e ownEvents) Publish(ctx context.Context, accountID string, data []byte) error {
	record := rawRecord(event.TopicRaw, event.FormatOwn, e.source, accountID, data)
	ctx, span := joined(ctx, e.tracer, &record)
	err := e.producer.Produce(ctx, record)
	span.End(err)
	return err
}
