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
	origin  string // image, or path of the program, for the message that tells the choice
	stop    func() error
}

// serviceKind is a service with the ways to start it, in the order of preference.
type serviceKind struct {
	name     string
	variable string // with the address of a running one
	methods  []startMethod
}

type startMethod struct {
	name  string // in messages
	start func(context.Context, stopPolicy) (*service, error)
}

// stopPolicy selects when a started service is stopped.
type stopPolicy int

const (
	stopWithBinary stopPolicy = iota // with the test binary
	stopByOwner                      // by the services command
)

func kafkaKind() serviceKind {
	return serviceKind{name: "kafka", variable: "TRUNKLINE_TEST_KAFKA",
		methods: []startMethod{{"Docker", dockerKafka}, {"local install", localKafka}}}
}

func redisKind() serviceKind {
	return serviceKind{name: "redis", variable: "TRUNKLINE_TEST_REDIS",
		methods: []startMethod{{"Docker", dockerRedis}, {"local install", localRedis}}}
}

func postgresKind() serviceKind {
	return serviceKind{name: "postgres", variable: "TRUNKLINE_TEST_POSTGRES",
		methods: []startMethod{{"Docker", dockerPostgres}, {"local install", localPostgres}}}
}

func rabbitMQKind() serviceKind {
	return serviceKind{name: "rabbitmq", variable: "TRUNKLINE_TEST_AMQP",
		methods: []startMethod{{"Docker", dockerRabbitMQ}, {"local install", localRabbitMQ}}}
}

// The shared services live as long as the test binary, because its tests have no common end;
// hence these globals.
var (
	sharedKafka        = openOnce(kafkaKind())
	sharedRedis        = openOnce(redisKind())
	sharedRedisCluster = openOnce(redisClusterKind())
	sharedPostgres     = openOnce(postgresKind())
	sharedRabbitMQ     = openOnce(rabbitMQKind())
	sharedS3           = openOnce(s3Kind())
)

func openOnce(k serviceKind) func() (*service, error) {
	return sync.OnceValues(func() (*service, error) { return k.open(context.Background(), stopWithBinary) })
}

// errMissing marks the absence of a service's program or file on this machine. Other errors are
// failures and no reason to skip.
var errMissing = errors.New("missing")

// open uses the first way that works, and logs which.
func (k serviceKind) open(ctx context.Context, policy stopPolicy) (*service, error) {
	address := os.Getenv(k.variable)
	if address != "" {
		k.logChoice("environment " + k.variable)
		return &service{address: address, stop: func() error { return nil }}, nil
	}

	var errs []error
	for _, method := range k.methods {
		opened, err := method.start(ctx, policy)
		if err == nil {
			k.logChoice(method.name + " " + opened.origin)
			return opened, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", method.name, err))
	}

	return nil, fmt.Errorf("no %s, and no %s in the environment: %w", k.name, k.variable, errors.Join(errs...))
}

func (k serviceKind) logChoice(choice string) {
	fmt.Fprintf(os.Stderr, "testservice: %s: %s\n", k.name, choice)
}

// skipIfShort skips a test that needs a service with -short, as in make check.
func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("testservice: -short runs without services")
	}
}

func openShared(t testing.TB, shared func() (*service, error)) *service {
	t.Helper()
	skipIfShort(t)
	opened, err := shared()
	skipOrFail(t, err)
	return opened
}

// skipOrFail ends the test if there is an error: it skips it for a missing service without CI=true, else
// fails it.
func skipOrFail(t testing.TB, err error) {
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
	const maxName = 40
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}

		return '-'
	}, t.Name())

	return name[:min(len(name), maxName)] + "-" + strings.ToLower(rand.Text()[:8]) + "-"
}
