package redisclient_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"trunkline/internal/freeport"
	"trunkline/internal/redisclient"
	"trunkline/internal/setting"
	"trunkline/internal/testservice"
	"trunkline/internal/tlsclient"
)

func open(t *testing.T, s redisclient.Settings) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.New(s, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})

	return client
}

// eventually tries until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for err := try(); err != nil; err = try() {
		select {
		case <-limit:
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// setAndGet uses keys of different nodes of a cluster.
func setAndGet(t *testing.T, client redis.UniversalClient) error {
	t.Helper()
	prefix := testservice.Prefix(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := client.Set(t.Context(), prefix+key, key, time.Minute).Err(); err != nil {
			return err
		}
		if got, err := client.Get(t.Context(), prefix+key).Result(); got != key || err != nil {
			return fmt.Errorf("read %q: %w", got, err)
		}
	}

	return nil
}

func TestAServerIsUsed(t *testing.T) {
	if err := setAndGet(t, open(t, redisclient.Settings{Address: testservice.Redis(t)})); err != nil {
		t.Error(err)
	}
}

func TestOneNodeNamesTheOthersOfACluster(t *testing.T) {
	if err := setAndGet(t,
		open(t, redisclient.Settings{ClusterAddresses: testservice.RedisCluster(t)[:1]})); err != nil {
		t.Error(err)
	}
}

func TestTheClientFollowsAFailover(t *testing.T) {
	sentinels := testservice.OwnRedisSentinel(t)
	client := open(t, redisclient.Settings{Password: setting.Secret(sentinels.Password), Sentinel: redisclient.Sentinel{
		Addresses: sentinels.Addresses, Master: sentinels.Master, Password: setting.Secret(sentinels.SentinelPassword),
	}})
	if err := setAndGet(t, client); err != nil {
		t.Fatal(err)
	}
	sentinels.FailOver(t)
	eventually(t, func() error { return setAndGet(t, client) })
}

// secured returns the settings of a server of OwnSecureRedis, without its address.
func secured(t *testing.T, ca *testservice.CA) redisclient.Settings {
	t.Helper()
	s := redisclient.Settings{Username: "app", Password: "secret",
		TLS: tlsclient.Settings{Enabled: true, CAFile: ca.File}}
	s.TLS.CertFile, s.TLS.KeyFile = ca.Pair(t, "client")
	return s
}

func TestTLSInACluster(t *testing.T) {
	ca := testservice.NewCA(t)
	_, bus, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}

	node := testservice.OwnSecureRedis(t, ca, "--cluster-enabled", "yes", "--cluster-port", bus, "--tls-cluster", "yes",
		"--cluster-announce-ip", "127.0.0.1")
	alone, whole := secured(t, ca), secured(t, ca)
	alone.Address, whole.ClusterAddresses = node.Addr, []string{node.Addr}
	server := open(t, alone).(*redis.Client)
	if err := server.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}

	eventually(t, func() error {
		if info, err := server.ClusterInfo(t.Context()).Result(); err != nil ||
			!strings.Contains(info, "cluster_state:ok") {
			return fmt.Errorf("%s (%v)", info, err)
		}
		return nil
	})

	if err := setAndGet(t, open(t, whole)); err != nil {
		t.Error(err)
	}
}

func TestTLSWithAClientCertificateAndAUser(t *testing.T) {
	ca := testservice.NewCA(t)
	s := secured(t, ca)
	s.Address = testservice.OwnSecureRedis(t, ca).Addr

	if err := open(t, s).Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}

	for name, change := range map[string]func(*redisclient.Settings){
		"without a certificate": func(s *redisclient.Settings) { s.TLS.CertFile, s.TLS.KeyFile = "", "" },
		"another CA":            func(s *redisclient.Settings) { s.TLS.CAFile = testservice.NewCA(t).File },
		"another name":          func(s *redisclient.Settings) { s.TLS.ServerName = "redis.example" },
		"a wrong password":      func(s *redisclient.Settings) { s.Password = "wrong" },
		"no user":               func(s *redisclient.Settings) { s.Username = "" },
	} {
		t.Run(name, func(t *testing.T) {
			other := s
			change(&other)
			if err := open(t, other).Ping(t.Context()).Err(); err == nil {
				t.Error("let in")
			}
		})
	}
}

func TestANewPasswordIsUsedByTheNextConnection(t *testing.T) {
	ca := testservice.NewCA(t)
	s := secured(t, ca)
	s.Address = testservice.OwnSecureRedis(t, ca).Addr
	right := string(s.Password)
	s.Password = "the one of the start"

	unreadable := errors.New("no such file")
	current := func() (string, error) { return right, unreadable }
	client, err := redisclient.New(s, current, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	if err := client.Ping(t.Context()).Err(); err == nil {
		t.Error("the password of the start is wrong, and let in")
	}

	unreadable = nil
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("with the password of the file: %v", err)
	}
}

func TestFilesAreReadAtOnce(t *testing.T) {
	s := redisclient.Settings{Address: "127.0.0.1:1", TLS: tlsclient.Settings{Enabled: true, CAFile: "/nowhere"}}
	if _, err := redisclient.New(s, nil, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "redis: reading tls.ca_file") {
		t.Errorf("got %v", err)
	}
}
