package directory

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/cmd/internal/cli"
	"trunkline/config/callrecording"
	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/recording"
	"trunkline/settings"
	"trunkline/stats"
	"trunkline/stats/figures"
)

// purge deletes all data of a deleted account.
func purge(p *cli.Program, ctx context.Context, stores cli.Stores, id string) (err error) {
	store, closeStore, err := backend.Recordings(stores.Settings, p.ToolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore()) }()

	purged := backend.Purged{Encryption: stores.Encryption, Providers: stores.Providers, Webhooks: stores.Webhooks}
	purged.Recordings, err = recording.New(ctx, recording.Settings{}, recording.Deps{
		DB: stores.DB, Store: store, Keys: stores.Encryption, Audit: stores.Audit, Metrics: prometheus.NewRegistry(),
		Log: p.ToolLog(),
	})
	if err != nil {
		return err
	}

	purged.Policies, err = callrecording.New(ctx, stores.DB, nil, stores.Audit)
	if err != nil {
		return err
	}

	purged.Index, err = cdrindex.New(ctx, stores.Settings.CDR, stores.DB, prometheus.NewRegistry(), p.ToolLog())
	if err != nil {
		return err
	}

	purged.Figures, err = figures.New(ctx, stores.Settings.Stats.Retention, stores.DB, prometheus.NewRegistry(),
		p.ToolLog())
	if err != nil {
		return err
	}

	if !backend.KafkaExists(stores.Settings) { // no server has run: no queue has a configuration
		return purgeNow(p, ctx, stores, purged, id)
	}

	return p.WithKafka(ctx, func(_ *settings.Settings, cluster *kafka.Cluster) (err error) {
		producer := cluster.NewProducer(kafka.ProducerConfig{})
		defer func() { err = errors.Join(err, producer.Close(context.WithoutCancel(ctx))) }()

		_, topicErr := cluster.Partitions(ctx, event.TopicQueues)
		if fault.KindOf(topicErr) != fault.KindNotFound { // the topic exists once a server has run
			purged.QueueConfigs = stats.NewQueueConfigs(cluster, producer)
		}

		return purgeNow(p, ctx, stores, purged, id)
	})
}

func purgeNow(p *cli.Program, ctx context.Context, stores cli.Stores, purged backend.Purged, id string) error {
	purge, err := backend.Purge(ctx, stores.Settings, stores.DB, stores.Identity.Directory, purged, p.ToolLog())
	if err != nil {
		return err
	}
	return purge.RunNow(ctx, id)
}
