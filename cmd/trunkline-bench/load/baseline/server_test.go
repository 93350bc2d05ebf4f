package baseline

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/trunkline-bench/load"
)

const run = "run-0001"

// start returns a running server and its address.
func start(t *testing.T, cfg Config) (s *Server, address string) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()

	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})

	return s, listener.Addr().String()
}

func TestEverySocketIsReachedInOrder(t *testing.T) {
	secure, err := SelfSigned()
	if err != nil {
		t.Fatal(err)
	}

	for _, coalesce := range []bool{false, true} {
		for scheme, config := range map[string]*tls.Config{"ws": nil, "wss": secure} {
			t.Run(fmt.Sprintf("%s coalesce %v", scheme, coalesce), func(t *testing.T) {
				t.Parallel()
				s, address := start(t, Config{Coalesce: coalesce, TLS: config, Writers: 2})
				l, err := load.New(load.Config{
					URL: scheme + "://" + address, Run: run, TLS: &tls.Config{InsecureSkipVerify: true},
					Groups: []load.Group{{Sockets: 20, Streams: 1}, {Token: "1", Sockets: 30, First: 1, Streams: 1}},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()

				if err := l.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}

				const messages, sockets = 3000, 50
				awaitProbes(t, s, l, sockets)
				for seq := uint64(1); seq <= messages; seq++ {
					for stream := range 2 {
						stamp := load.Stamp{Stream: stream, Seq: seq, At: time.Now().UnixNano()}
						message := append(stamp.Append([]byte{'{'}, run), strings.Repeat(" ", int(seq%300))+"}"...)
						if !s.Send(t.Context(), stream, message) {
							t.Fatal("not sent")
						}
					}
				}

				for began := time.Now(); l.Tally().Deliveries < messages*sockets; time.Sleep(time.Millisecond) {
					if time.Since(began) > 2*time.Minute {
						t.Fatalf("%d received", l.Tally().Deliveries)
					}
				}

				if !l.Tally().Faultless() || l.Outstanding([]uint64{messages, messages}) != 0 {
					t.Errorf("%d lost, %d again", l.Tally().Lost, l.Tally().Duplicated)
				}
			})
		}
	}
}

// awaitProbes sends probes until every socket has received one: the client completes a handshake
// slightly before the server does.
func awaitProbes(t *testing.T, s *Server, l *load.Load, sockets int) {
	t.Helper()
	for began := time.Now(); l.Tally().Proven < sockets; time.Sleep(5 * time.Millisecond) {
		for stream := range 2 {
			if !s.Send(t.Context(), stream, load.Stamp{Stream: stream}.Append(nil, run)) ||
				time.Since(began) > time.Minute {
				t.Fatalf("%d of %d have had a probe", l.Tally().Proven, sockets)
			}
		}
	}
}

func TestTheEndDoesNotWaitForStalledClients(t *testing.T) {
	s, err := New(Config{Writers: 1})
	if err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener) }()
	l, err := load.New(load.Config{
		URL: "ws://" + listener.Addr().String(), Run: run, Stalled: 1, Groups: []load.Group{{Sockets: 1, Streams: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	if err := l.Connect(ctx); err != nil {
		t.Fatal(err)
	}

	full, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()

	for size := 1 << 20; s.Send(full, 0, make([]byte, size)) && len(s.writers[0].frames) < 20; {
	}
	cancel()

	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("still serving")
	}
}

func TestInvalidHandshakesAreRefused(t *testing.T) {
	_, address := start(t, Config{Writers: 1})
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x00\x01\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key: k\r\nAuthorization: Bearer x\r\n\r\n"} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		if _, err := conn.Write([]byte(request)); err != nil {
			t.Fatal(err)
		}

		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("%q: %d bytes, %v", request, n, err)
		}
	}

	if _, err := New(Config{}); err == nil {
		t.Error("a server without writers")
	}
}
