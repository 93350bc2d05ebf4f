package testservice

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisSentinel is a Redis master, its replica and three Sentinels for one test. All of them
// require passwords.
type RedisSentinel struct {
	Addresses        []string // of the Sentinels
	Master           string   // its name
	Password         string   // of the servers
	SentinelPassword string

	servers, sentinels []*Server
}

const sentinels = 3

// OwnRedisSentinel starts the servers and returns when the Sentinels are connected to each other
// and to both servers.
func OwnRedisSentinel(t testing.TB) *RedisSentinel {
	t.Helper()
	skipIfShort(t)
	r := &RedisSentinel{Master: "main", Password: "of-redis", SentinelPassword: "of-sentinel"}
	t.Cleanup(func() { must(t, closeServers(append(r.servers, r.sentinels...))) })
	skipOrFail(t, r.startServers(t.Context()))
	skipOrFail(t, r.startSentinels(t.Context()))

	for _, sentinel := range r.sentinels {
		must(t, sentinel.proc.await(t.Context(),
			func(ctx context.Context) error { return r.probe(ctx, sentinel.Addr) }))
	}

	return r
}

func (r *RedisSentinel) startServers(ctx context.Context) error {
	arguments := []string{"--requirepass", r.Password, "--masterauth", r.Password, "--repl-diskless-sync-delay", "0"}
	for range 2 {
		server, err := newRedis(arguments...)
		if err != nil {
			return err
		}

		server.probe = func(ctx context.Context) error { return pingWith(ctx, server.Addr, r.Password) }
		r.servers = append(r.servers, server)
		if err := server.launch(ctx); err != nil {
			return err
		}

		host, port, err := net.SplitHostPort(server.Addr)
		if err != nil {
			return err
		}

		arguments = append(arguments, "--replicaof", host+" "+port) // of the next server, the replica
	}

	return nil
}

func (r *RedisSentinel) startSentinels(ctx context.Context) error {
	host, port, err := net.SplitHostPort(r.servers[0].Addr)
	if err != nil {
		return err
	}

	for range sentinels {
		sentinel, err := newRedis()
		if err != nil {
			return err
		}

		r.sentinels, r.Addresses = append(r.sentinels, sentinel), append(r.Addresses, sentinel.Addr)
		_, sentinelPort, err := net.SplitHostPort(sentinel.Addr)
		if err != nil {
			return err
		}

		file := filepath.Join(sentinel.dir, "sentinel.conf") // rewritten by Sentinel
		if err := os.WriteFile(file, fmt.Appendf(nil, `port %[1]s
bind 127.0.0.1
requirepass %[6]s
sentinel sentinel-pass %[6]s
sentinel monitor %[2]s %[3]s %[4]s 2
sentinel auth-pass %[2]s %[5]s
sentinel down-after-milliseconds %[2]s 60000
`, sentinelPort, r.Master, host, port, r.Password, r.SentinelPassword), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of a Sentinel: %w", err)
		}

		sentinel.command.name, sentinel.command.args = "sentinel", []string{sentinel.origin, file, "--sentinel"}
		sentinel.probe = func(ctx context.Context) error { return pingWith(ctx, sentinel.Addr, r.SentinelPassword) }
		if err := sentinel.launch(ctx); err != nil {
			return err
		}
	}

	return nil
}

// probe returns nil when a Sentinel lists the others and a replica in sync.
func (r *RedisSentinel) probe(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	client := redis.NewSentinelClient(&redis.Options{Addr: address, Password: r.SentinelPassword})
	defer client.Close()

	master, err := client.Master(ctx, r.Master).Result()
	if err != nil {
		return err
	}

	replicas, err := client.Replicas(ctx, r.Master).Result()
	if err != nil {
		return err
	}

	inSync := slices.ContainsFunc(replicas,
		func(replica map[string]string) bool { return replica["master-link-status"] == "ok" })
	if master["flags"] != "master" || master["num-other-sentinels"] != fmt.Sprint(sentinels-1) || !inSync {
		return fmt.Errorf("it lists %s other Sentinels and %d replicas", master["num-other-sentinels"], len(replicas))
	}

	return nil
}

// FailOver kills the master and makes a Sentinel promote the replica. It may be called once. The
// Sentinels' own timeout for the kill is long, so that they never fail over by themselves on a
// busy machine.
func (r *RedisSentinel) FailOver(t testing.TB) {
	t.Helper()
	r.servers[0].Kill(t)
	client := redis.NewSentinelClient(&redis.Options{Addr: r.Addresses[0], Password: r.SentinelPassword})
	defer client.Close()
	must(t, r.sentinels[0].proc.await(t.Context(),
		func(ctx context.Context) error { return client.Failover(ctx, r.Master).Err() }))
}

func pingWith(ctx context.Context, address, password string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	client := redis.NewClient(&redis.Options{Addr: address, Password: password})
	defer client.Close()
	return client.Ping(ctx).Err()
}
