package testservice

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// service is a running one that tests share.
type service struct {
	address string // what its variable in the environment holds
	origin  string
	stop    func() error
}

// kind is a service and the ways to have it, in the order they are tried.
type kind struct {
	name     string
	variable string // names a running one
	ways     []way
}

type way struct {
	name  string
	start func(context.Context, end) (*service, error)
}

// end selects who stops a service that was started.
type end int

const (
	nobodyStops end = iota // a test binary just exits
	ownerStops             // the services command
)

func kafkaKind() kind {
	return kind{"kafka", "TRUNKLINE_TEST_KAFKA", []way{{"Docker", dockerKafka}, {"local install", localKafka}}}
}

func redisKind() kind {
	return kind{"redis", "TRUNKLINE_TEST_REDIS", []way{{"Docker", dockerRedis}, {"local install", localRedis}}}
}

func postgresKind() kind {
	return kind{"postgres", "TRUNKLINE_TEST_POSTGRES", []way{{"Docker", dockerPostgres}, {"local install", localPostgres}}}
}

func rabbitMQKind() kind {
	return kind{"rabbitmq", "TRUNKLINE_TEST_AMQP", []way{{"Docker", dockerRabbitMQ}, {"local install", localRabbitMQ}}}
}

// The shared services live as long as the test binary, as its tests have no
// common end: they are the one thing here that is global.
var (
	sharedKafka    = openOnce(kafkaKind())
	sharedRedis    = openOnce(redisKind())
	sharedCluster  = openOnce(redisClusterKind())
	sharedPostgres = openOnce(postgresKind())
	sharedRabbitMQ = openOnce(rabbitMQKind())
	sharedS3       = openOnce(s3Kind())
)

func openOnce(k kind) func() (*service, error) {
	return sync.OnceValues(func() (*service, error) { return k.open(context.Background(), nobodyStops) })
}

// errMissing means that a program or file of a service is not on this machine. Anything
// else that goes wrong is a failure, not a reason to skip.
var errMissing = errors.New("missing")

// open takes the first way that works, and says which.
func (k kind) open(ctx context.Context, end end) (*service, error) {
	if address := os.Getenv(k.variable); address != "" {
		k.say("environment " + k.variable)
		return &service{address: address, stop: func() error { return nil }}, nil
	}
	var failed []error
	for _, way := range k.ways {
		opened, err := way.start(ctx, end)
		if err == nil {
			k.say(way.name + " " + opened.origin)
			return opened, nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", way.name, err))
	}
	return nil, fmt.Errorf("no %s, and no %s in the environment: %w", k.name, k.variable, errors.Join(failed...))
}

func (k kind) say(how string) { fmt.Fprintf(os.Stderr, "testservice: %s: %s\n", k.name, how) }

// skipShort skips what needs a service in a run with -short: make check.
func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("testservice: -short runs without services")
	}
}

func use(t testing.TB, shared func() (*service, error)) *service {
	t.Helper()
	skipShort(t)
	opened, err := shared()
	had(t, err)
	return opened
}

// had ends the test when there is an error: it skips where it may.
func had(t testing.TB, err error) {
	t.Helper()
	if maySkip(err) {
		fmt.Fprintf(os.Stderr, "testservice: SKIPPING %s: %v\n", t.Name(), err)
		t.Skipf("testservice: %v", err)
	}
	must(t, err)
}

func maySkip(err error) bool {
	return errors.Is(err, errMissing) && os.Getenv("CI") != "true"
}

// Prefix returns a prefix for this test's topics and keys, like no other
// test's, in this run or another: lower-case letters, digits and hyphens, at
// most 50 characters.
func Prefix(t testing.TB) string {
	t.Helper()
	const most = 40
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, t.Name())
	return name[:min(len(name), most)] + "-" + strings.ToLower(rand.Text()[:8]) + "-"
}
