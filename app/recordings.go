package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/app/backend"
	"trunkline/config/encryption"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/masterkey"
	"trunkline/recording"
)

// buildRecordings makes the accounts' encryption configurations and the rooms
// they are for.
func (a *App) buildRecordings(ctx context.Context, deps *api.Deps) error {
	keys, err := backend.MasterKeys(a.settings)
	if err != nil {
		return fmt.Errorf("master keys: %w", err)
	}
	configs, err := encryption.New(ctx, a.db, keys, a.registry)
	if err != nil {
		return fmt.Errorf("recording encryption: %w", err)
	}
	if err := a.haveMasterKey(keys); err != nil {
		return fmt.Errorf("master keys: %w", err)
	}
	store, closeStore, err := backend.Recordings(a.settings, a.log)
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	a.life.closes("recordings' store", func(context.Context) error { return closeStore() })
	recordings, err := recording.New(ctx, recording.Config{MaxBytes: int64(a.settings.Recordings.MaxBytes)}, recording.Deps{
		DB: a.db, Store: store, Keys: configs, Metrics: a.registry, Log: a.log,
		Publisher: ownEvents{a.newProducer("recordings' producer", kafka.ProducerConfig{}), "recordings"},
	})
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	a.life.runs("recordings", recordings.Run)
	deps.Encryption, deps.Recordings = configs, recordings
	return nil
}

// haveMasterKey makes the first master key where this process alone has the
// database. It comes after every room has found that no key is lost.
func (a *App) haveMasterKey(keys *masterkey.Keyring) error {
	if a.db.Postgres() {
		if _, err := keys.Newest(); err != nil {
			// Keys made here would be unknown to the other nodes.
			a.log.Warn("no master key: encryption of recordings cannot be configured; set master_key, the same on every node", "error", err)
		}
		return nil
	}
	made, err := keys.Create()
	if err != nil {
		return err
	}
	if made {
		a.log.Info("master key made: without this file the accounts' keys are lost, keep a copy elsewhere",
			"file", backend.MasterKeyFile(a.settings))
	}
	return nil
}

// ownEvents sends events of our own making on their way to the channel.
type ownEvents struct {
	producer *kafka.Producer
	source   string
}

// Publish implements recording.Publisher. An account's events keep their order.
func (e ownEvents) Publish(ctx context.Context, accountID string, data []byte) error {
	return e.producer.Produce(ctx, kafka.Record{
		Topic: event.TopicRaw, Partition: kafka.AnyPartition, Key: []byte(accountID), Value: data,
		Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte(event.FormatOwn)},
			{Key: event.HeaderSource, Value: []byte(e.source)},
		},
	})
}
