package kazoo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/ingest/feed"
	"trunkline/internal/retry"
)

const (
	heartbeat          = 5 * time.Second // of AMQP
	dialTimeout        = 10 * time.Second
	closeTimeout       = 2 * time.Second
	queueCheckInterval = 5 * time.Second // of checks of the queue's length
	queueExpires       = 24 * time.Hour  // without a consumer
	maxReadMessages    = 256             // messages returned by one Read
)

// session is a connection that consumes the feed's queue. It implements feed.Session
// and feed.Acknowledger.
type session struct {
	platform         *platform
	conn             *amqp.Connection
	guard            *guardedConn
	channel          *amqp.Channel
	deliveries       <-chan amqp.Delivery
	closed           chan *amqp.Error // gets why the connection has ended
	cancelBackground context.CancelFunc
	running          sync.WaitGroup // the goroutines in the background
	events           []feed.Event   // reused by Read

	mu             sync.Mutex
	unacknowledged []delivered // messages that Read returned and that are not acknowledged, in order
	overflow       bool        // the broker has dropped messages before the next event
}

// delivered is a message that Read returned.
type delivered struct {
	tag    uint64 // the broker's number of it
	digest uint64 // see platform.digest
}

// Connect implements feed.Platform.
func (p *platform) Connect(ctx context.Context) (feed.Session, error) {
	conn, guard, err := p.dial(ctx)
	if err != nil {
		return nil, p.operationError("logging in to RabbitMQ", err, binding{})
	}

	s := &session{platform: p, conn: conn, guard: guard, closed: conn.NotifyClose(make(chan *amqp.Error, 1))}
	// Not under ctx: Close ends it, which the feed calls in any case.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.cancelBackground = stop
	length, err := s.declare()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}

	// A full queue has dropped messages while nobody read.
	s.overflow = length >= p.maxQueued
	if p.syncsAccounts {
		// Before the first message, whose account may be new.
		p.syncAccounts(ctx)
		s.runInBackground(background, p.runAccountSync)
	}

	s.deliveries, err = s.channel.Consume(p.queueName(), "", false, true, false, false, nil)
	if err != nil {
		return nil, errors.Join(p.operationError("consuming "+p.queueName(), err, binding{}), s.Close())
	}

	s.runInBackground(background, s.watchQueueLength)
	return s, nil
}

// dial logs in over a connection whose frames are checked below the client and, with amqps,
// above TLS.
func (p *platform) dial(ctx context.Context) (*amqp.Connection, *guardedConn, error) {
	uri, err := amqp.ParseURI(p.url)
	if err != nil { // it has the address, password included
		return nil, nil,
			errors.New("url is no AMQP address: special characters of user, password and vhost are written as %XX")
	}

	var guard *guardedConn
	plain, overTLS := strings.CutPrefix(p.url, "amqps:")
	conn, err := amqp.DialConfig("amqp:"+strings.TrimPrefix(plain, "amqp:"), amqp.Config{
		Heartbeat: heartbeat, FrameSize: maxFrameBytes,
		Properties: amqp.Table{"product": "Trunkline", "connection_name": "trunkline feed " + p.name},
		Dial: func(network, _ string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: dialTimeout}
			conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port)))
			if err != nil {
				return nil, err
			}

			if err := conn.SetDeadline(time.Now().Add(dialTimeout)); err != nil { // of the login; the client clears it
				return nil, errors.Join(err, conn.Close())
			}

			if overTLS {
				conn, err = handshake(ctx, conn, p.tls, uri.Host)
				if err != nil {
					return nil, err
				}
			}

			guard = newGuardedConn(conn)
			return guard, nil
		},
	})

	return conn, guard, err
}

// handshake returns conn over TLS. It closes conn on failure.
func handshake(ctx context.Context, conn net.Conn, config *tls.Config, host string) (net.Conn, error) {
	config = config.Clone()
	if config == nil { // amqps in url, without tls.enabled
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.ServerName == "" {
		config.ServerName = host
	}

	client := tls.Client(conn, config)
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}

	return client, nil
}

// declare declares the queue, binds it and returns its length.
func (s *session) declare() (length int, err error) {
	s.channel, err = s.conn.Channel()
	if err != nil {
		return 0, fmt.Errorf("opening a channel: %w", err)
	}

	known := map[string]bool{}
	for _, b := range s.platform.bindings {
		if known[b.exchange] {
			continue
		}
		known[b.exchange] = true
		// A passive declaration compares only the name.
		if err := s.channel.ExchangeDeclarePassive(b.exchange, "topic", false, false, false, false, nil); err != nil {
			return 0, s.platform.operationError("looking for the exchange "+b.exchange, err, b)
		}
	}

	queue, err := s.channel.QueueDeclare(s.platform.queueName(), true, false, false, false, s.platform.queueArguments())
	if err != nil {
		return 0, s.platform.operationError("declaring the queue "+s.platform.queueName(), err, binding{})
	}

	for _, b := range s.platform.bindings {
		if err := s.channel.QueueBind(s.platform.queueName(), b.key, b.exchange, false, nil); err != nil {
			return 0, s.platform.operationError("binding the queue to the exchange "+b.exchange, err, b)
		}
	}

	// Before consuming: the broker would send all that it has.
	if err := s.channel.Qos(s.platform.prefetch, 0, false); err != nil {
		return 0, fmt.Errorf("setting the prefetch count: %w", err)
	}

	return queue.Messages, nil
}

// queueArguments returns what a queue is declared with, which RabbitMQ compares with the existing one.
func (p *platform) queueArguments() amqp.Table {
	return amqp.Table{
		"x-max-length": int64(p.maxQueued), "x-overflow": "drop-head", "x-queue-mode": "lazy",
		"x-expires": queueExpires.Milliseconds(),
	}
}

// Read implements feed.Session.
func (s *session) Read(ctx context.Context) ([]feed.Event, error) {
	s.events = s.events[:0]
	for len(s.events) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case d, ok := <-s.deliveries:
			if !ok {
				return nil, s.deliveryError()
			}
			s.handleDelivery(ctx, d)
		}
	}

	for range maxReadMessages {
		select {
		case d, ok := <-s.deliveries:
			if !ok {
				return s.events, nil // the next call returns the error
			}
			s.handleDelivery(ctx, d)
		default:
			return s.events, nil
		}
	}

	return s.events, nil
}

// handleDelivery appends the events of a message. It acknowledges a redelivered message that Kafka already has.
func (s *session) handleDelivery(ctx context.Context, d amqp.Delivery) {
	s.guard.take(len(d.Body))
	digest := s.platform.digest(d)
	if d.Redelivered && s.platform.storedDigests.contains(digest) {
		if err := d.Ack(false); err != nil {
			s.platform.log.DebugContext(ctx, "acknowledgement of a repeated message failed", "error", err)
		}
		return
	}

	first := len(s.events)
	s.events = s.platform.appendEvents(ctx, s.events, d)
	s.mu.Lock()
	defer s.mu.Unlock()

	s.unacknowledged = append(s.unacknowledged, delivered{d.DeliveryTag, digest})
	if s.overflow {
		s.overflow = false
		s.events[first].Hole = 1 // RabbitMQ does not count dropped messages
	}
}

// deliveryError returns the reason for the end of the deliveries.
func (s *session) deliveryError() error {
	select {
	case err := <-s.closed:
		if err != nil {
			return fmt.Errorf("reading from RabbitMQ: %w", err)
		}
	// Where the consumer alone has ended, no reason comes.
	case <-time.After(closeTimeout):
	}
	return errors.New(
		"reading from RabbitMQ: the consumer was cancelled: the queue was deleted, or the connection closed")
}

// Acknowledge implements feed.Acknowledger.
func (s *session) Acknowledge(_ context.Context, delivery uint64) error {
	s.mu.Lock()
	n := 0
	for n < len(s.unacknowledged) && s.unacknowledged[n].tag <= delivery {
		// Before the acknowledgement: if that is lost, the message comes again.
		s.platform.storedDigests.add(s.unacknowledged[n].digest)
		n++
	}

	if n == 0 {
		s.mu.Unlock()
		return nil
	}

	last := s.unacknowledged[n-1].tag
	s.unacknowledged = s.unacknowledged[n:]
	s.mu.Unlock()

	if err := s.channel.Ack(last, true); err != nil {
		return fmt.Errorf("acknowledging messages: %w", err)
	}

	return nil
}

// Close implements feed.Session.
func (s *session) Close() error {
	s.cancelBackground()
	err := s.conn.CloseDeadline(time.Now().Add(closeTimeout))
	s.running.Wait()
	if err != nil && !errors.Is(err, amqp.ErrClosed) {
		return fmt.Errorf("closing the connection to RabbitMQ: %w", err)
	}
	return nil
}

// runInBackground runs a function in a goroutine that Close waits for.
func (s *session) runInBackground(ctx context.Context, run func(context.Context)) {
	s.running.Go(func() { s.platform.panics.Do("feed kazoo", func() { run(ctx) }) })
}

// watchQueueLength records when the queue starts dropping messages, and when it stops: the second resync finds the
// changes in between.
func (s *session) watchQueueLength(ctx context.Context) {
	full := false
	for range retry.Ticks(ctx, s.platform.queueCheckInterval) {
		length, err := s.queueLength()
		if err != nil {
			if ctx.Err() == nil && !s.conn.IsClosed() {
				s.platform.log.WarnContext(ctx, "queue length unknown", "error", err)
			}
			return
		}

		now := length >= s.platform.maxQueued
		if now != full {
			full = now
			s.mu.Lock()
			s.overflow = true
			s.mu.Unlock()
		}
	}
}

// queueLength requests the number of undelivered messages in the queue.
func (s *session) queueLength() (int, error) {
	// A channel of its own: the broker closes the channel of a refused request, and its consumer with it.
	channel, err := s.conn.Channel()
	if err != nil {
		return 0, err
	}
	defer func() { _ = channel.Close() }() // used for one request
	queue, err := channel.QueueDeclarePassive(s.platform.queueName(), true, false, false, false, nil)
	return queue.Messages, err
}
