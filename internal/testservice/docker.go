package testservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"trunkline/internal/freeport"
)

const (
	engineTimeout = 3 * time.Second  // a running Docker engine answers at once
	imageTimeout  = 90 * time.Second // to pull a missing image and start it
)

// image is a container to run with one port on loopback.
type image struct {
	name          string
	containerPort int // in the container
	publishedPort int // port on the host
	env           map[string]string
	args          []string
	// probe succeeds when the service answers on loopback
	probe func(context.Context) error
}

func dockerKafka(ctx context.Context, policy stopPolicy) (*service, error) {
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}

	// Clients reconnect to the advertised address, so the port must be the same inside and
	// outside.
	port := ports[0]
	address := hostPort(port)
	return runImage(ctx, policy, address, image{
		name: "apache/kafka:" + kafkaVersion(), containerPort: port, publishedPort: port,
		env: map[string]string{
			"KAFKA_NODE_ID":                                  "1",
			"KAFKA_PROCESS_ROLES":                            "broker,controller",
			"KAFKA_CONTROLLER_QUORUM_VOTERS":                 "1@localhost:29093",
			"KAFKA_LISTENERS":                                fmt.Sprintf("CLIENT://:%d,CONTROLLER://:29093", port),
			"KAFKA_ADVERTISED_LISTENERS":                     "CLIENT://" + address,
			"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":           "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
			"KAFKA_INTER_BROKER_LISTENER_NAME":               "CLIENT",
			"KAFKA_CONTROLLER_LISTENER_NAMES":                "CONTROLLER",
			"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                "false",
			"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":             "4",
			"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":         "1",
			"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
			"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":            "1",
			"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":         "0",
			"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS":             "1000",
			"KAFKA_LOG_INITIAL_TASK_DELAY_MS":                "500",
			"KAFKA_LOG_RETENTION_CHECK_INTERVAL_MS":          "1000",
		},
		probe: func(ctx context.Context) error { return probeKafka(ctx, address, 1, 1) },
	})
}

func dockerRedis(ctx context.Context, policy stopPolicy) (*service, error) {
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}
	address := hostPort(ports[0])
	return runImage(ctx, policy, address, image{
		name: "redis:7", containerPort: 6379, publishedPort: ports[0],
		probe: func(ctx context.Context) error { return pingRedis(ctx, address) },
	})
}

func dockerRabbitMQ(ctx context.Context, policy stopPolicy) (*service, error) {
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}
	address := hostPort(ports[0])
	return runImage(ctx, policy, rabbitMQURL(address), image{
		name: "rabbitmq:3", containerPort: 5672, publishedPort: ports[0],
		probe: func(ctx context.Context) error { return probeAMQP(ctx, address) },
	})
}

func dockerPostgres(ctx context.Context, policy stopPolicy) (*service, error) {
	ports, err := freeport.Find(1)
	if err != nil {
		return nil, err
	}

	serverURL := postgresURL(hostPort(ports[0]))
	return runImage(ctx, policy, serverURL, image{
		name: "postgres:15", containerPort: 5432, publishedPort: ports[0],
		env: map[string]string{"POSTGRES_USER": postgresUser, "POSTGRES_DB": "postgres",
			"POSTGRES_HOST_AUTH_METHOD": "trust"},
		args:  []string{"postgres", "-c", "fsync=off", "-c", "max_connections=200"},
		probe: func(ctx context.Context) error { return execute(ctx, serverURL, "SELECT 1") },
	})
}

func runImage(ctx context.Context, policy stopPolicy, address string, img image) (*service, error) {
	if err := checkDockerEngine(ctx, policy); err != nil {
		return nil, err
	}

	containerPort, err := network.ParsePort(strconv.Itoa(img.containerPort))
	if err != nil {
		return nil, fmt.Errorf("naming the port of %s: %w", img.name, err)
	}

	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()

	fmt.Fprintf(os.Stderr, "testservice: Docker answers; starting %s\n", img.name)
	running, err := testcontainers.Run(ctx, img.name,
		testcontainers.WithLogger(log.New(io.Discard, "", 0)),
		testcontainers.WithEnv(img.env),
		testcontainers.WithCmd(img.args...),
		testcontainers.WithExposedPorts(containerPort.String()),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{containerPort: {{
				HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: strconv.Itoa(img.publishedPort),
			}}}
		}),
	)

	// Also after an error: Run may return a container that was made and did not start.
	stop := func() error { return testcontainers.TerminateContainer(running) }
	if err == nil {
		err = poll(ctx, nil, img.probe)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testservice: not with Docker: %v\n", err)
		return nil, errors.Join(fmt.Errorf("running %s: %w", img.name, err), stop())
	}

	return &service{address: address, origin: img.name, stop: stop}, nil
}

// checkDockerEngine returns an error if no Docker engine is available.
func checkDockerEngine(ctx context.Context, policy stopPolicy) error {
	if policy == stopWithBinary && testcontainers.ReadConfig().RyukDisabled {
		return errors.New("testcontainers' reaper is off, so nothing would end the container")
	}

	result := make(chan error, 1)
	go func() {
		// the detection of the engine may not stop with its context
		provider, err := testcontainers.NewDockerProvider()
		if err == nil {
			err = provider.Health(ctx)
		}
		result <- err
	}()

	select {
	case err := <-result:
		if err != nil {
			return fmt.Errorf("asking the engine: %w", err)
		}
		return nil
	case <-time.After(engineTimeout):
		return fmt.Errorf("no answer from the engine in %v", engineTimeout)
	}
}
