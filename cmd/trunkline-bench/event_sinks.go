package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/retry"
	"trunkline/settings"
)

// newSink returns the sink of the run's events and the function that closes it.
func (b *bench) newSink(ctx context.Context, client *http.Client, a *benchAccounts) (load.Sink, func(), error) {
	if b.through == throughHTTP {
		sink, err := b.httpSink(ctx, client, a)
		return sink, func() {}, err
	}

	cluster, closeKafka, err := b.openServerKafka(ctx)
	if err != nil && b.through == throughKafka {
		return nil, nil, err
	}
	if err != nil {
		b.printf("%v: publishing over HTTP", err)
		sink, err := b.httpSink(ctx, client, a)
		return sink, func() {}, err
	}

	sink := &kafkaSink{producer: cluster.NewProducer(kafka.ProducerConfig{}), accounts: a.ids, to: rawEvents}
	return sink, func() {
		sink.close(ctx, b)
		if err := closeKafka(); err != nil {
			b.printf("closing Kafka: %v", err)
		}
	}, nil
}

// openServerKafka returns the Kafka that the server uses: the one in the settings, or the broker
// embedded in the server that runs on the data directory. It never starts a broker of its own,
// which would have no accounts.
func (b *bench) openServerKafka(ctx context.Context) (*kafka.Cluster, func() error, error) {
	s, err := b.p.Settings()
	if err != nil {
		return nil, nil, err
	}

	cluster, closeKafka, err := b.openKafka(ctx, s)
	if err != nil {
		return nil, nil, err
	}

	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	if err := cluster.Ping(ctx); err != nil {
		return nil, nil, errors.Join(err, closeKafka())
	}

	return cluster, closeKafka, nil
}

func (b *bench) openKafka(ctx context.Context, s *settings.Settings) (*kafka.Cluster, func() error, error) {
	if len(s.Kafka.Brokers) > 0 {
		return backend.OpenSharedKafka(ctx, s, b.p.ToolLog())
	}

	settings := kafka.DefaultSettings(embedded.Address)
	settings.TopicPrefix = s.Kafka.TopicPrefix
	// The socket of the server's broker: without a server there is none, and Ping fails.
	cluster, err := kafka.Open(ctx, kafka.Config{
		Settings: settings,
		Dial:     embedded.DialSocket(filepath.Join(s.DataDir, "broker")),
	}, prometheus.NewRegistry(), b.p.ToolLog())
	if err != nil {
		return nil, nil, err
	}

	return cluster, func() error {
		cluster.Close()
		return nil
	}, nil
}

// rawTopic is a topic that the normalizer reads, and the format of a run's records in it.
type rawTopic struct{ topic, format string }

var (
	rawEvents      = rawTopic{event.TopicRaw, "generic"}
	rawCallRecords = rawTopic{event.TopicCDRRaw, "svc.cdr"}
)

// kafkaSink publishes to Kafka directly, as a source with Kafka access does.
type kafkaSink struct {
	producer *kafka.Producer
	accounts []string // by stream
	to       rawTopic
}

func (k *kafkaSink) close(ctx context.Context, b *bench) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := k.producer.Close(ctx); err != nil {
		b.printf("closing the producer: %v", err)
	}
}

func (k *kafkaSink) Publish(ctx context.Context, events []load.Event) error {
	headers := []kafka.Header{
		{Key: event.HeaderFormat, Value: []byte(k.to.format)},
		{Key: event.HeaderSource, Value: []byte("bench")},
	}
	records := make([]kafka.Record, len(events))

	for i, e := range events {
		records[i] = kafka.Record{
			Topic: k.to.topic, Partition: kafka.AnyPartition,
			Key: []byte(k.accounts[e.Stream]), Value: e.JSON, Headers: headers,
		}
	}

	return k.producer.Produce(ctx, records...)
}

// httpSink publishes over the public ingest API: with the given API key for accounts named on the
// command line, else with a key that it creates and that is deleted with the accounts.
func (b *bench) httpSink(ctx context.Context, client *http.Client, a *benchAccounts) (*httpSink, error) {
	key := b.apiKey
	if b.username != "" && key == "" {
		key = b.p.Getenv(cli.EnvAPIKey)
	}
	if b.username != "" && key == "" {
		return nil, cli.Usagef("publishing over HTTP needs an API key in %s", cli.EnvAPIKey)
	}

	if b.username == "" {
		err := b.p.WithDirectory(ctx, func(directory *identity.Directory) (err error) {
			key, _, err = directory.CreateAPIKey(ctx, identity.NewAPIKey{Account: a.domain, Name: "trunkline-bench"})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("creating an API key: %w", err)
		}

		// Until servers have the key.
		retry.Sleep(ctx, accountPropagation)
	}

	return &httpSink{url: b.url, key: key, client: client, format: rawEvents.format}, nil
}

type httpSink struct {
	url, key          string
	client            *http.Client
	format            string
	overloadResponses atomic.Uint64 // responses of overload (429, 503)
}

// Publish sends the events in one body and repeats it while the server is
// overloaded.
func (h *httpSink) Publish(ctx context.Context, events []load.Event) error {
	var body bytes.Buffer
	for _, e := range events {
		body.Write(e.JSON)
		body.WriteByte('\n')
	}

	for began := time.Now(); ; {
		err := h.postLines(ctx, body.Bytes())
		var refused *cli.HTTPError
		if !errors.As(err, &refused) || time.Since(began) > 30*time.Second ||
			refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusServiceUnavailable {
			return err
		}

		h.overloadResponses.Add(1)
		if !retry.Sleep(ctx, max(refused.RetryAfter, 50*time.Millisecond)) {
			return ctx.Err()
		}
	}
}

func (h *httpSink) postLines(ctx context.Context, lines []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+"/api/v2/ingest/"+h.format,
		bytes.NewReader(lines))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	request.Header.Set("X-API-Key", h.key)
	_, err = cli.Fetch(h.client, request, http.StatusAccepted)
	return err
}
