package testservice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Kafka returns the bootstrap addresses of a shared Apache Kafka of one broker. It does not
// create topics automatically; name them with Prefix.
func Kafka(t testing.TB) []string {
	t.Helper()
	return strings.Split(openShared(t, sharedKafka).address, ",")
}

// localKafka starts a Kafka of one broker from the local install.
func localKafka(ctx context.Context, _ stopPolicy) (*service, error) {
	home, err := findKafkaHome(ctx)
	if err != nil {
		return nil, err
	}

	dir, err := newFolder("kafka")
	if err != nil {
		return nil, err
	}

	brokers, err := startBrokers(ctx, home, dir, 1, "", nil)
	stop := func() error {
		return errors.Join(stopBrokers(brokers), os.RemoveAll(dir))
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}

	return &service{
		address: brokers[0].Client,
		origin:  fmt.Sprintf("%s (Apache Kafka %s)", filepath.Clean(home.dir), home.version),
		stop:    stop,
	}, nil
}

// startBrokers also returns the prepared brokers if it fails, so that the caller can stop them.
func startBrokers(ctx context.Context, home *kafkaHome, dir string, n int, scram string,
	managedListeners *managed) ([]*broker, error) {
	brokers, err := newBrokers(ctx, home, dir, n, scram, managedListeners)
	if err != nil {
		return brokers, err
	}

	for _, b := range brokers {
		if err := b.launch(); err != nil {
			return brokers, err
		}
	}

	return brokers, inParallel(brokers, func(b *broker) error { return b.awaitReady(ctx, n) })
}

func stopBrokers(brokers []*broker) error {
	return inParallel(brokers, func(b *broker) error {
		if b == nil || b.proc == nil {
			return nil
		}
		return b.proc.stopAndWait()
	})
}
