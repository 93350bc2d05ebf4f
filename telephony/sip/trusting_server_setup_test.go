package sip

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"trunkline/internal/fault"
)

type emptyDirectory struct{}

func (emptyDirectory) SIPUser(context.Context, string, string) (User, error) {
	return User{}, fault.NotFound("no such user")
}

// newTrustingServer starts a server to which all of 127.0.0.0/8 is trusted, so that no
// rate limit holds forged datagrams back.
func newTrustingServer(t testing.TB, prepare func(*Server)) *Server {
	t.Helper()
	return startTrustingServer(t, Config{}, prometheus.NewRegistry(), prepare)
}

func startTrustingServer(t testing.TB, config Config, reg *prometheus.Registry, prepare func(*Server)) *Server {
	t.Helper()
	config.Settings = Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0",
		TrustedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	config.Limits.MaxCalls = 4000
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	bindings, err := NewRedisBindings(client, "test:")
	if err != nil {
		t.Fatal(err)
	}

	s, err := New(config, emptyDirectory{}, bindings, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	prepare(s)

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("the server: %v", err)
		}
	})

	t.Cleanup(func() {
		cancel()
		running.Wait()
	})

	return s
}

func (emptyDirectory) Authenticate(context.Context, User, netip.Addr, func(HA1) bool) error {
	return fault.Unauthenticated("no such user")
}

// awaitAnswer sends an OPTIONS from a known address until it is answered.
func awaitAnswer(t testing.TB, s *Server, probe *net.UDPConn) {
	t.Helper()
	buffer := make([]byte, 2000)
	for attempt := range 50 {
		text := strings.ReplaceAll(forgedOptions, "branch=z9hG4bKf%d",
			fmt.Sprintf("branch=z9hG4bKp%d-%d;rport", time.Now().UnixNano(), attempt))
		if _, err := probe.WriteToUDPAddrPort([]byte(strings.ReplaceAll(text, "%d", "1")), s.Addr()); err != nil {
			t.Fatal(err)
		}

		_ = probe.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := probe.Read(buffer); err == nil {
			return
		}
	}

	t.Fatal("the server does not answer")
}

func newProbe(t testing.TB) *net.UDPConn {
	t.Helper()
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = probe.Close() })
	return probe
}
