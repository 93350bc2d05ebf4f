package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/event/topics"
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

func TestCompressedBatchesAreReadBack(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	var next int64
	for _, compression := range []string{"none", "lz4", "zstd"} {
		settings := DefaultSettings(fake.ListenAddrs()...)
		settings.Compression = compression
		c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		before := fake.PartitionInfo("t", 0).NumBytes
		value := strings.Repeat("the same again ", 400)
		p := c.NewProducer(ProducerConfig{})

		for _, v := range []string{value, "short"} {
			if err := p.Produce(t.Context(), Record{Topic: "t", Key: []byte("k"), Value: []byte(v)},
				Record{Topic: "t", Key: []byte("k"), Value: []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}

		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if size := fake.PartitionInfo("t", 0).NumBytes - before; (compression == "none") != (size > int64(len(value))) {
			t.Errorf("%s: %d bytes in the log", compression, size)
		}

		r := c.NewReader("t", 0, next)
		for read := 0; read < 4; {
			records, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, record := range records {
				if want := value; read < 2 && string(record.Value) != want ||
					read >= 2 && string(record.Value) != "short" {
					t.Errorf("%s: record %d has %d bytes", compression, read, len(record.Value))
				}
				read++
			}
		}

		next = r.Next()
		r.Close()
	}
}

// A compressed batch that its topic refuses for its size is divided like any
// other: the records that fit one by one are stored.
func TestACompressedBatchIsDivided(t *testing.T) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		defer fake.Close()

		settings := DefaultSettings(fake.ListenAddrs()...)
		settings.Compression = compression
		c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		const records, limit = 16, 8 << 10
		if err := c.EnsureTopics(t.Context(),
			[]topics.Spec{{Name: "t", Partitions: 1,
				Config: map[string]string{"max.message.bytes": strconv.Itoa(limit)}}}); err != nil {
			t.Fatal(err)
		}

		var sent []Record
		for n := range records {
			noise := make([]byte, limit/4)
			rand.Read(noise) // compression must not make them fit together
			sent = append(sent,
				Record{Topic: "t", Key: []byte{byte(n)}, Value: append(noise, strings.Repeat("again ", limit/24)...)})
		}

		p := c.NewProducer(ProducerConfig{})
		if err := p.Produce(t.Context(), sent...); err != nil {
			t.Fatalf("%s: %v", compression, err)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		r := c.NewReader("t", 0, 0)
		for read := 0; read < records; {
			got, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, record := range got {
				if !bytes.Equal(record.Key, sent[read].Key) || !bytes.Equal(record.Value, sent[read].Value) {
					t.Errorf("%s: record %d is another one", compression, read)
				}
				read++
			}
		}

		r.Close()
	}
}
