package backend

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/internal/tlsclient"
	"trunkline/settings"
)

func TestEmbeddedRedisForgetsInTime(t *testing.T) {
	defer goleak.VerifyNone(t)

	client, closeRedis, err := OpenRedis(settings.Default(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeRedis(); err != nil {
			t.Error(err)
		}
	}()

	if err := client.Set(t.Context(), "k", "v", time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Get(t.Context(), "k").Result(); err != nil || got != "v" {
		t.Fatalf("%q, %v", got, err)
	}

	for began := time.Now(); client.Exists(t.Context(), "k").Val() == 1; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("the key is still there")
		}
	}
}

func TestEmbeddedRedisTakesLongPipelines(t *testing.T) {
	client, closeRedis, err := OpenRedis(settings.Default(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer closeRedis()

	pipe := client.Pipeline()
	for i := range 1000 {
		pipe.Set(t.Context(), strconv.Itoa(i), strings.Repeat("x", 100), 0)
	}

	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := client.DBSize(t.Context()).Val(); n != 1000 {
		t.Errorf("%d keys", n)
	}
}

func TestRedisNeedsReadableCertificates(t *testing.T) {
	s := settings.Default()
	s.Redis.Address = "127.0.0.1:1"
	s.Redis.TLS = tlsclient.Settings{Enabled: true, CAFile: "/nowhere"}
	if _, _, err := OpenRedis(s, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "redis: reading tls.ca_file") {
		t.Errorf("got %v", err)
	}
}
