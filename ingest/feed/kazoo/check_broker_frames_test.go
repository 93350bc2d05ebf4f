package kazoo

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/internal/panics"
)

// frame returns a frame of AMQP 0-9-1.
func frame(kind byte, channel uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16([]byte{kind}, channel), uint32(len(payload)))
	return append(append(b, payload...), 0xCE)
}

// method returns a frame with a method, which class and number identify.
func method(channel, class, number uint16, arguments ...byte) []byte {
	return frame(frameMethod, channel,
		append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, class), number), arguments...))
}

// deliver returns a basic.deliver to the consumer.
func deliver(channel uint16, consumer string, tag uint64) []byte {
	arguments := append([]byte{byte(len(consumer))}, consumer...)
	arguments = binary.BigEndian.AppendUint64(arguments, tag)
	return method(channel, 60, 60, append(arguments, 0, 1, 'x', 1, 'k')...)
}

// header returns a content header of a body of n bytes.
func header(channel uint16, n uint64) []byte {
	payload := binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, n)
	return frame(frameHeader, channel, append(payload, 0, 0))
}

// lyingBroker logs a client in, and sends attack to its first consumer.
func lyingBroker(t *testing.T, attack func(channel uint16, consumer string, out io.Writer) error) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_ = serveUntilConsume(conn, attack)
	}()

	return "amqp://u:p@" + listener.Addr().String() + "/"
}

// serveUntilConsume answers the methods of a client up to basic.consume.
func serveUntilConsume(conn net.Conn, attack func(channel uint16, consumer string, out io.Writer) error) error {
	in := bufio.NewReader(conn)
	if _, err := in.Discard(8); err != nil {
		return err
	}

	start := append([]byte{0, 9, 0, 0, 0, 0}, "\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US"...)
	if _, err := conn.Write(method(0, 10, 10, start...)); err != nil {
		return err
	}

	for {
		var head [frameHeaderBytes]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}

		channel := binary.BigEndian.Uint16(head[1:])
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(in, payload); err != nil || head[0] != frameMethod {
			continue
		}

		class, number := binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:])
		var answer []byte
		switch [2]uint16{class, number} {
		case [2]uint16{10, 11}: // start-ok
			answer = method(0, 10, 30, 0, 10, 0, 0, 0, 0, 0, 0)
		case [2]uint16{10, 31}: // tune-ok
			continue
		case [2]uint16{10, 40}:
			answer = method(0, 10, 41, 0)
		case [2]uint16{20, 10}:
			answer = method(channel, 20, 11, 0, 0, 0, 0)
		case [2]uint16{40, 10}, [2]uint16{50, 20}, [2]uint16{60, 10}: // exchange.declare, queue.bind, basic.qos
			answer = method(channel, class, number+1)
		case [2]uint16{50, 10}:
			answer = method(channel, 50, 11, append([]byte{1, 'q'}, 0, 0, 0, 0, 0, 0, 0, 0)...)
		case [2]uint16{60, 20}: // basic.consume: reserved, queue, consumer tag
			queue := int(payload[6])
			tag := payload[7+queue:]
			consumer := string(tag[1 : 1+tag[0]])
			if _, err := conn.Write(
				method(channel, 60, 21, append([]byte{byte(len(consumer))}, consumer...)...)); err != nil {
				return err
			}

			return attack(channel, consumer, conn)
		default:
			continue
		}

		if _, err := conn.Write(answer); err != nil {
			return err
		}
	}
}

// A broker that lies ends its connection with an error that says so, and neither the process
// nor its memory.
func TestABrokerThatLiesEndsItsConnection(t *testing.T) {
	send := func(frames ...[]byte) func(uint16, string, io.Writer) error {
		return func(_ uint16, _ string, out io.Writer) error {
			for _, f := range frames {
				if _, err := out.Write(f); err != nil {
					return err
				}
			}

			_, err := io.Copy(io.Discard, out.(net.Conn))
			return err
		}
	}

	for name, attack := range map[string]func(uint16, string, io.Writer) error{
		"a heartbeat inside a message": func(channel uint16, consumer string, out io.Writer) error {
			return send(deliver(channel, consumer, 1), frame(frameHeartbeat, channel, nil))(channel, consumer, out)
		},
		"a heartbeat inside a body": func(channel uint16, consumer string, out io.Writer) error {
			return send(deliver(channel, consumer, 1), header(channel, 100),
				frame(frameHeartbeat, channel, nil))(channel, consumer, out)
		},
		"a message of 2^60 bytes": func(channel uint16, consumer string, out io.Writer) error {
			return send(deliver(channel, consumer, 1), header(channel, 1<<60),
				frame(frameBody, channel, []byte("{}")))(channel, consumer, out)
		},
		"a body longer than its header says": func(channel uint16, consumer string, out io.Writer) error {
			return send(deliver(channel, consumer, 1), header(channel, 2),
				frame(frameBody, channel, []byte("{}{}")))(channel, consumer, out)
		},
		"a frame of 4 GiB":        send([]byte{frameBody, 0, 1, 0xff, 0xff, 0xff, 0xff}),
		"a frame of another type": send(frame(7, 1, nil)),
		"a body without a header": send(frame(frameBody, 1, []byte("{}"))),
		"more than was asked for": func(channel uint16, consumer string, out io.Writer) error {
			body := make([]byte, 100<<10)
			for tag := uint64(1); ; tag++ {
				for _, f := range [][]byte{deliver(channel, consumer, tag), header(channel, uint64(len(body))),
					frame(frameBody, channel, body)} {
					if _, err := out.Write(f); err != nil {
						return err
					}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := slog.New(slog.DiscardHandler)
			p := &platform{name: "x", url: lyingBroker(t, attack), prefetch: prefetch, maxQueued: maxQueuedMessages,
				queueCheckInterval: time.Hour,
				log:                log, panics: panics.New(prometheus.NewRegistry(), log)}
			opened, err := p.Connect(t.Context())
			if err != nil { // the lie came with the answer to the subscription
				if !strings.Contains(err.Error(), "the broker") {
					t.Error(err)
				}
				return
			}
			defer func() { _ = opened.Close() }()

			s := opened.(*session)

			select { // nothing reads the deliveries, as when the spool is full
			case reason := <-s.closed:
				if reason == nil || !strings.Contains(reason.Error(), "the broker") {
					t.Errorf("ended with %v", reason)
				}
			case <-time.After(patience):
				t.Error("the connection goes on")
			}

			if held := s.guard.pendingBytes.Load(); held > 2*maxPendingBytes {
				t.Errorf("%d bytes are held", held)
			}
		})
	}
}

// Hostile JSON in a message, and acknowledgements that the broker did not ask for, are harmless.
func TestHostileMessagesAreStoredOrDropped(t *testing.T) {
	p := &platform{log: slog.New(slog.DiscardHandler), accounts: accountsByName{}}
	for name, body := range map[string]string{
		"deep arrays":  strings.Repeat("[", 1<<20),
		"deep objects": strings.Repeat(`{"Custom-Channel-Vars":`, 200_000),
		"many keys": `{"Event-Category":"call_event","Event-Name":"CHANNEL_CREATE"` +
			strings.Repeat(`,"Call-ID":"x"`, 200_000) + `}`,
		"zero bytes":     "\x00\x00\x00",
		"invalid UTF-8":  "{\"Event-Category\":\"\xff\xfe\",\"Event-Name\":\"\xc0\"}",
		"a large number": `{"Event-Category":"call_event","Event-Name":"CHANNEL_CREATE","Timestamp":1e999999999}`,
	} {
		events := p.appendEvents(context.Background(), nil, amqp.Delivery{Body: []byte(body), DeliveryTag: 1 << 63})
		if len(events) != 1 || events[0].Account != "" {
			t.Errorf("%s: %d events", name, len(events))
		}
	}

	s := &session{platform: p, unacknowledged: []delivered{{tag: 5}}}
	for _, tag := range []uint64{0, 1, 4} {
		if err := s.Acknowledge(t.Context(), tag); err != nil || len(s.unacknowledged) != 1 {
			t.Errorf("tag %d: %v", tag, err)
		}
	}
}

func FuzzGuardedConn(f *testing.F) {
	f.Add(append(deliver(1, "c", 1), header(1, 3)...), 3)
	f.Add(append(header(1, 2), frame(frameBody, 1, []byte("{}"))...), 1)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		whole, parts := newGuardedConn(nil), newGuardedConn(nil)
		want := whole.check(stream)
		cut = min(len(stream), max(0, cut))
		got := parts.check(stream[:cut])
		if got == nil {
			got = parts.check(stream[cut:])
		}
		if fmt.Sprint(want) != fmt.Sprint(got) {
			t.Errorf("cut at %d: %v, whole %v", cut, got, want)
		}
		if whole.pendingBytes.Load() < 0 {
			t.Error("negative count")
		}
	})
}
