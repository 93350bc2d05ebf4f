package testservice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// Cluster is a Kafka for one test, from the local install. Brokers are numbered from 0 and keep
// their addresses. With three or more, topics have three replicas by default, of which two must
// be in sync.
type Cluster struct {
	User, Password string // SCRAM-SHA-512; empty: no authentication

	members []*broker
}

// KafkaCluster starts n brokers and returns when each lists all others.
func KafkaCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	return newKafkaCluster(t, n, &Cluster{})
}

// SecureKafkaCluster is KafkaCluster with authentication by SCRAM-SHA-512 as the cluster's User,
// without TLS.
func SecureKafkaCluster(t testing.TB, n int) *Cluster {
	t.Helper()
	return newKafkaCluster(t, n, &Cluster{User: "trunkline", Password: "only-for-tests"})
}

func newKafkaCluster(t testing.TB, n int, c *Cluster) *Cluster {
	t.Helper()
	skipIfShort(t)
	home, err := findKafkaHome(t.Context())
	skipOrFail(t, err)
	dir, err := newFolder("cluster")
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(stopBrokers(c.members), os.RemoveAll(dir))) })
	scram := ""

	if c.User != "" {
		scram = fmt.Sprintf("SCRAM-SHA-512=[name=%s,password=%s]", c.User, c.Password)
	}

	c.members, err = startBrokers(t.Context(), home, dir, n, scram, nil)
	must(t, err)
	return c
}

// Brokers returns the clients' address of each broker.
func (c *Cluster) Brokers() []string {
	addresses := make([]string, len(c.members))
	for i, b := range c.members {
		addresses[i] = b.Client
	}
	return addresses
}

// Kill kills broker i with SIGKILL.
func (c *Cluster) Kill(t testing.TB, i int) {
	t.Helper()
	must(t, c.members[i].proc.killAndWait())
}

// Start starts a killed broker again and returns when it is ready; its replicas may still be
// catching up.
func (c *Cluster) Start(t testing.TB, i int) {
	t.Helper()
	must(t, c.members[i].launchAndWait(t.Context()))
}

// Pause stops broker i (SIGSTOP): its connections stay open without answers.
func (c *Cluster) Pause(t testing.TB, i int) {
	t.Helper()
	must(t, c.members[i].proc.signal(syscall.SIGSTOP))
}

// Resume continues a paused broker.
func (c *Cluster) Resume(t testing.TB, i int) {
	t.Helper()
	must(t, c.members[i].proc.signal(syscall.SIGCONT))
}

// AwaitReplicas waits until all replicas of all topics are in sync.
func (c *Cluster) AwaitReplicas(t testing.TB) {
	t.Helper()
	for _, b := range c.members {
		must(t, b.proc.await(t.Context(), func(ctx context.Context) error { return probeReplicas(ctx, b.Internal) }))
	}
}

func probeReplicas(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	conn, err := kafka.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()

	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return err
	}

	partitions, err := conn.ReadPartitions()
	if err != nil {
		return err
	}

	for _, p := range partitions {
		if len(p.Isr) < len(p.Replicas) {
			return fmt.Errorf("%d of %d replicas of %s/%d are in sync", len(p.Isr), len(p.Replicas), p.Topic, p.ID)
		}
	}

	return nil
}

func (b *broker) launchAndWait(ctx context.Context) error {
	if err := b.launch(); err != nil {
		return err
	}
	return b.awaitReady(ctx, 1)
}
