package testservice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/freeport"
)

// RedisCluster returns the addresses of a shared Redis Cluster of three masters; name keys with
// Prefix.
func RedisCluster(t testing.TB) []string {
	t.Helper()
	return strings.Split(openShared(t, sharedRedisCluster).address, ",")
}

func redisClusterKind() serviceKind {
	return serviceKind{name: "redis cluster", variable: "TRUNKLINE_TEST_REDIS_CLUSTER",
		methods: []startMethod{{"local install", localRedisCluster}}}
}

const (
	redisClusterNodes = 3
	redisClusterSlots = 16384
)

func localRedisCluster(ctx context.Context, _ stopPolicy) (*service, error) {
	var servers []*Server
	stop := func() error { return closeServers(servers) }
	busPorts, err := freeport.Find(redisClusterNodes)
	if err != nil {
		return nil, err
	}

	var addresses []string
	for _, bus := range busPorts {
		server, err := newRedis("--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
		if err == nil {
			servers, addresses = append(servers, server), append(addresses, server.Addr)
			err = server.launch(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, stop())
		}
	}

	for i, server := range servers {
		if err := joinRedisCluster(ctx, server, i, servers[0].Addr, busPorts[0]); err != nil {
			return nil, errors.Join(fmt.Errorf("making a Redis Cluster: %w", err), stop())
		}
	}

	// After all have joined: a node calls the cluster ok only when every slot has a master.
	for _, server := range servers {
		if err := server.proc.await(ctx,
			func(ctx context.Context) error { return probeRedisCluster(ctx, server.Addr) }); err != nil {
			return nil, errors.Join(err, stop())
		}
	}

	return &service{address: strings.Join(addresses, ","), origin: servers[0].origin, stop: stop}, nil
}

// joinRedisCluster assigns the node its slots and introduces it to the first node.
func joinRedisCluster(ctx context.Context, server *Server, n int, first string, firstBus int) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()

	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()

	const slotsPerNode = redisClusterSlots/redisClusterNodes + 1
	if err := client.ClusterAddSlotsRange(ctx, n*slotsPerNode,
		min((n+1)*slotsPerNode, redisClusterSlots)-1).Err(); err != nil {
		return err
	}

	host, port, err := net.SplitHostPort(first)
	if err != nil || n == 0 {
		return err
	}

	// With the bus port, which is not the client port plus 10,000 here.
	return client.Do(ctx, "CLUSTER", "MEET", host, port, firstBus).Err()
}

func probeRedisCluster(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()

	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}

	if !strings.Contains(info, "cluster_state:ok") ||
		!strings.Contains(info, fmt.Sprint("cluster_known_nodes:", redisClusterNodes)) {
		return fmt.Errorf("the cluster is not complete: %s", info)
	}

	return nil
}

func closeServers(servers []*Server) error {
	return inParallel(servers, (*Server).close)
}
