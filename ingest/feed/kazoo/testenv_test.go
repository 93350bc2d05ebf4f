package kazoo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/ingest/feed"
	"trunkline/internal/setting"
	"trunkline/internal/testservice"
)

const patience = 3 * time.Minute

// accountsByName has the accounts for a platform's names of them, as feed.Accounts.
type accountsByName map[string]string

func (n accountsByName) Account(all ...string) string {
	for _, name := range all {
		if n[name] != "" {
			return n[name]
		}
	}
	return ""
}

// exchanges are those that Kazoo declares.
var exchanges = []string{"callevt", "cdr", "conference", "kapps", "callmgr", "registrar"}

// bus is Kazoo's side of a RabbitMQ.
type bus struct {
	channel *amqp.Channel
}

// dial connects as Kazoo and declares its exchanges, as transient as Kazoo's are.
func dial(t *testing.T, address string) *bus {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close() }) // the broker may be gone
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}

	for _, exchange := range exchanges {
		if err := channel.ExchangeDeclare(exchange, "topic", false, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}

	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}

	return &bus{channel}
}

// publish sends messages and returns when RabbitMQ has put them in the queues.
func (b *bus) publish(t *testing.T, exchange, key string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		confirmed, err := b.channel.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, false, false,
			amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}

		if _, err := confirmed.WaitContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// feedConfig returns a feed of the test's own, whose queue is deleted at the end.
func feedConfig(t *testing.T, address string) feed.Config {
	t.Helper()
	var cfg feed.Config
	cfg.SetDefaults()

	cfg.Name, cfg.Kind, cfg.URL = testservice.Prefix(t)+"feed", feed.KindKazoo, setting.URL(address)
	t.Cleanup(func() {
		conn, err := amqp.Dial(address)
		if err != nil {
			return // its server has ended
		}
		defer conn.Close()

		if channel, err := conn.Channel(); err == nil {
			_, _ = channel.QueueDelete(queuePrefix+cfg.Name, false, false, false)
		}
	})

	return cfg
}

func newTestPlatform(t *testing.T, cfg feed.Config, accounts accountsByName, directory Directory) *platform {
	t.Helper()
	p, err := newPlatform(cfg, feed.Deps{Accounts: accounts, Log: slog.New(slog.NewTextHandler(t.Output(), nil))},
		directory)
	if err != nil {
		t.Fatal(err)
	}
	p.queueCheckInterval = 20 * time.Millisecond
	return p
}

func openSession(t *testing.T, p *platform) *session {
	t.Helper()
	var s feed.Session
	var err error

	// A consumer whose connection was cut is forgotten after a moment.
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var refusal *feed.Refusal
		s, err = p.Connect(t.Context())
		if err == nil {
			break
		}
		if errors.As(err, &refusal) || time.Now().After(end) {
			t.Fatal(err)
		}
	}

	t.Cleanup(func() { _ = s.Close() }) // closed by some tests already
	return s.(*session)
}

// read returns the next n events.
func read(t *testing.T, s *session, n int) (all []feed.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	for len(all) < n {
		events, err := s.Read(ctx)
		if err != nil {
			t.Fatalf("after %d of %d events: %v", len(all), n, err)
		}
		all = append(all, events...)
	}

	if len(all) > n {
		t.Fatalf("%d events, want %d: %s", len(all), n, all[n].Value)
	}

	return all
}

// wantNothingMore checks that no more events come, up to a marker that is published now.
func wantNothingMore(t *testing.T, b *bus, s *session) {
	t.Helper()
	b.publish(t, "kapps", "acdc_stats.status.marker.marker", status("marker", "marker", "ready"))
	if got := read(t, s, 1); !strings.Contains(string(got[0].Value), "marker") {
		t.Fatalf("more came: %s", got[0].Value)
	}
}

func acknowledgeEvent(t *testing.T, s *session, e feed.Event) {
	t.Helper()
	if err := s.Acknowledge(t.Context(), e.Delivery); err != nil {
		t.Fatal(err)
	}
}

// status is a message of ACDc's statistics: an agent's status in ACDc's word.
func status(account, agent, word string) string {
	return object(map[string]any{
		"Event-Category": "acdc_status_stat", "Event-Name": word, "App-Name": "acdc", "App-Version": "4.0.0",
		"Msg-ID":     agent + word,
		"Account-ID": account, "Agent-ID": agent, "Timestamp": 63962388900,
	})
}

// object returns a JSON object.
func object(members map[string]any) string {
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// tcpProxy forwards connections to a server until they are cut.
type tcpProxy struct {
	address string
	mu      sync.Mutex
	conns   []net.Conn
}

// startProxy begins to forward connections to a server.
func startProxy(t *testing.T, server string) *tcpProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	c := &tcpProxy{address: listener.Addr().String()}
	t.Cleanup(func() { listener.Close(); c.cut() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}

			far, err := net.Dial("tcp", server)
			if err != nil {
				near.Close()
				continue
			}

			c.mu.Lock()
			c.conns = append(c.conns, near, far)
			c.mu.Unlock()

			go func() { _, _ = io.Copy(far, near); far.Close() }()
			go func() { _, _ = io.Copy(near, far); near.Close() }()
		}
	}()

	return c
}

func (c *tcpProxy) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// withCrossbar is feedConfig with a Crossbar.
func withCrossbar(t *testing.T, address string, crossbar *crossbarServer) feed.Config {
	t.Helper()
	cfg := feedConfig(t, address)
	cfg.CrossbarURL, cfg.CrossbarAPIKey = crossbar.URL, setting.Secret(apiKey)
	return cfg
}
