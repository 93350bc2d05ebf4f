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

// service is a running, shared service.
type service struct {
	address string // value of its environment variable
	origin  string
	stop    func() error
}

// kind is a service with the ways to start it, in the order of preference.
type kind struct {
	name     string
	variable string // with the address of a running one
	ways     []way
}

type way struct {
	name  string
	start func(context.Context, end) (*service, error)
}

// end selects when a started service is stopped.
type end int

const (
	stopWithBinary end = iota // with the test binary
	stopByOwner               // by the services command
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

// The shared services live as long as the test binary, because its tests have no common end;
// hence these globals.
var (
	sharedKafka    = openOnce(kafkaKind())
	sharedRedis    = openOnce(redisKind())
	sharedCluster  = openOnce(redisClusterKind())
	sharedPostgres = openOnce(postgresKind())
	sharedRabbitMQ = openOnce(rabbitMQKind())
	sharedS3       = openOnce(s3Kind())
)

func openOnce(k kind) func() (*service, error) {
	return sync.OnceValues(func() (*service, error) { return k.open(context.Background(), stopWithBinary) })
}

// errMissing marks the absence of a service's program or file on this machine. Other errors are
// failures and no reason to skip.
var errMissing = errors.New("missing")

// open uses the first way that works, and logs which.
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

// skipShort skips a test that needs a service with -short, as in make check.
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

// had ends the test if there is an error: it skips it for a missing service without CI=true, else
// fails it.
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

// Prefix returns a unique prefix for this test's topics and keys: lower-case letters, digits and
// hyphens, at most 50 characters.
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
