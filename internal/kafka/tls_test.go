package kafka

import (
	"context"
	"crypto/tls"
	"log/slog"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/event/topics"
	"trunkline/internal/kafka/credentials"
	"trunkline/internal/testservice"
	"trunkline/internal/tlsclient"
)

// useEveryWay goes every way to the brokers: requests of our own, kafka-go's
// client, and the group protocol, each with its connections.
func useEveryWay(t *testing.T, cfg Config) {
	t.Helper()
	c, err := Open(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	if err := c.EnsureTopics(t.Context(), []topics.Spec{{Name: "t", Partitions: 4}}); err != nil {
		t.Fatal(err)
	}

	p := c.NewProducer(ProducerConfig{})
	for partition := range 4 {
		if err := p.Produce(t.Context(), Record{Topic: "t", Partition: partition, Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}

	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	read := make(chan Record, 4)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- c.RunGroup(ctx, GroupConfig{Group: "g", Topics: []string{"t"}},
			func(ctx context.Context, l *Assignment) error {
				r := c.NewReader(l.Topic, l.Partition, 0)
				defer r.Close()

				records, err := r.Read(ctx)
				if err != nil {
					return err
				}

				select {
				case read <- *records[0].Clone():
					<-ctx.Done()
				case <-ctx.Done():
				}

				return nil
			})
	}()

	for range 4 {
		if r := <-read; string(r.Value) != "v" {
			t.Errorf("read %s", r.Value)
		}
	}
	cancel()

	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestClientsUseTLSAndLogIn(t *testing.T) {
	ca := testservice.NewCA(t)
	cert, key := ca.Pair(t, "broker")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}

	for _, mechanism := range []struct{ ours, theirs string }{
		{"plain", "PLAIN"}, {"scram-sha-256", "SCRAM-SHA-256"}, {"scram-sha-512", "SCRAM-SHA-512"},
	} {
		t.Run(mechanism.ours, func(t *testing.T) {
			fake, err := kfake.NewCluster(kfake.NumBrokers(2),
				kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}),
				kfake.EnableSASL(), kfake.Superuser(mechanism.theirs, "user", "secret"))
			if err != nil {
				t.Fatal(err)
			}
			defer fake.Close()

			settings := DefaultSettings(fake.ListenAddrs()...)
			settings.TLS = tlsclient.Settings{Enabled: true, CAFile: ca.File}
			settings.SASL = credentials.Settings{Mechanism: mechanism.ours, Username: "user", Password: "secret"}
			cfg := Config{Settings: settings}
			useEveryWay(t, cfg)
			cfg.TLS.CAFile = ""
			stranger, err := Open(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close()

			if err := stranger.Ping(t.Context()); err == nil {
				t.Error("a certificate nobody vouches for was taken")
			}
		})
	}
}
