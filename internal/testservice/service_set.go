package testservice

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Set is a Kafka, a Redis, a Redis Cluster, a PostgreSQL and a RabbitMQ, started by the services
// command and shared by all test binaries. It has no S3 store, because that starts fast: each
// test starts its own.
type Set struct {
	variables []string
	services  []*service
}

// StartSet starts the services that have no address in the environment. It leaves out a service
// that is missing on this machine, with a message, and its tests are skipped; with CI=true that
// is an error, and nothing is left running.
func StartSet(ctx context.Context) (*Set, error) {
	set := &Set{}
	for _, kind := range []serviceKind{kafkaKind(), redisKind(), redisClusterKind(), postgresKind(), rabbitMQKind()} {
		opened, err := kind.open(ctx, stopByOwner)
		if maySkip(err) {
			fmt.Fprintf(os.Stderr, "testservice: GOING WITHOUT %s, tests that need it will be skipped: %v\n", kind.name,
				err)
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("starting the services: %w", err), set.Stop())
		}

		set.services = append(set.services, opened)
		set.variables = append(set.variables, kind.variable+"="+opened.address)
	}

	return set, nil
}

// Environment returns NAME=address for each service.
func (s *Set) Environment() []string { return s.variables }

// Stop ends what StartSet started.
func (s *Set) Stop() error {
	return inParallel(s.services, func(s *service) error { return s.stop() })
}
