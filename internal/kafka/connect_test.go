package kafka

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka/credentials"
)

func passwordFile(t *testing.T, password string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAChangedPasswordFileIsUsedByTheNextConnection(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "user", "new"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	path := passwordFile(t, "old")
	settings := DefaultSettings(fake.ListenAddrs()...)
	settings.SASL = credentials.Settings{Mechanism: "plain", Username: "user", PasswordFile: path}
	c, err := Open(t.Context(), Config{Settings: settings},
		nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	if err := c.Ping(t.Context()); err == nil {
		t.Fatal("the old password was taken")
	}
	if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}

	for c.Ping(t.Context()) != nil { // kafka-go waits before it connects again
		time.Sleep(50 * time.Millisecond)
		if t.Context().Err() != nil {
			t.FailNow()
		}
	}
}

// A broker that limits sessions closes a connection whose client goes on
// without authenticating again.
func TestConnectionsAuthenticateAgain(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(),
		kfake.Superuser("SCRAM-SHA-256", "user", "secret"),
		kfake.BrokerConfigs(map[string]string{"connections.max.reauth.ms": "500"}))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	var logins, connections atomic.Int32
	fake.ControlKey(int16(kmsg.SASLHandshake), func(kmsg.Request) (kmsg.Response, error, bool) {
		logins.Add(1)
		return nil, nil, false
	})

	settings := DefaultSettings(fake.ListenAddrs()...)
	settings.SASL = credentials.Settings{Mechanism: "scram-sha-256", Username: "user", Password: "secret"}
	c, err := Open(t.Context(), Config{
		Settings: settings,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	dial := func() net.Conn {
		conn, err := c.transport.Dial(t.Context(), "tcp", fake.ListenAddrs()[0])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}

	conn, late := dial(), int32(0)
	for began, last := time.Now(), time.Now(); logins.Load() < 4; last = time.Now() {
		time.Sleep(20 * time.Millisecond)
		if err := askVersions(conn); err == nil {
			continue
		} else if time.Since(last) < 90*time.Millisecond || time.Since(began) > 3*time.Minute {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}

		conn = dial() // the request waited here until the session was over: a slow machine
		late++
	}

	if n := connections.Load(); n > 2+late { // the transport may have one
		t.Errorf("%d connections, %d logins", n, logins.Load())
	}
}

func askVersions(conn net.Conn) error {
	if _, err := conn.Write(setFrameSize(appendRequestHeader(nil, 18, 0))); err != nil { // ApiVersions
		return err
	}
	var head [8]byte
	if _, err := readFull(conn, head[:]); err != nil {
		return err
	}
	_, err := readFull(conn, make([]byte, int(head[2])<<8+int(head[3])-4))
	return err
}

func readFull(conn net.Conn, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = conn.Read(p[n:])
		n += more
	}
	return n, err
}

func TestFramesAreCountedAcrossWrites(t *testing.T) {
	stream := []byte{0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 9}
	for chunk := 1; chunk <= len(stream); chunk++ {
		var f frameCounter
		for rest := stream; len(rest) > 0; {
			n := min(chunk, len(rest))
			f.add(rest[:n])
			rest = rest[n:]
		}

		if f.complete != 3 || !f.atBoundary() {
			t.Errorf("in pieces of %d: %d messages", chunk, f.complete)
		}

		f.add(stream[:5])
		if f.complete != 3 || f.atBoundary() {
			t.Errorf("in pieces of %d: half a message counts", chunk)
		}
	}
}
