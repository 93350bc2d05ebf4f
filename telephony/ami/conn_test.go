package ami

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/eventconn/conntest"
)

func TestConnReturnsTheReasonOfItsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"closed":              {func(p *peer) {}, io.EOF},
		"closed in a message": {func(p *peer) { p.Writef("Event: Hangup\r\nUni") }, io.ErrUnexpectedEOF},
		"endless line": {func(p *peer) { p.Writef("%s", strings.Repeat("x", 1<<20)); p.WaitClosed() },
			ErrTooLarge},
		"endless message": {func(p *peer) { p.Writef("%s", strings.Repeat("a: b\r\n", 1<<16)); p.WaitClosed() },
			ErrTooLarge},
		"endless blanks": {func(p *peer) { p.Writef("%s", strings.Repeat("\r\n", 1<<20)); p.WaitClosed() },
			ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialClient(t, Config{Address: afterLogin(t, test.play), MaxMessage: 64 << 10})
			if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if _, err := c.Do(t.Context(), Action{Name: "Ping"}); !errors.Is(err, test.want) {
				t.Fatalf("an action after the end: %v", err)
			}
		})
	}
}

// A capture that arrives in small pieces, and is cut, gives the events before the cut.
func TestCaptureArrivesSlowlyAndIsCut(t *testing.T) {
	data := capture(t, "queue-answered")
	data = data[:len(data)-40] // in the last message, the response to Logoff
	var want []*Message

	whole := bytes.LastIndex(data, []byte("\r\n\r\n")) + 4
	for _, p := range readMessages(t, bytes.NewReader(data[:whole])) {
		if !p.isResponse() {
			want = append(want, p)
		}
	}

	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		for at, step := 0, 1; at < len(data); at, step = at+step, step%97+1 {
			p.Write(data[at:min(at+step, len(data))])
		}
	})})
	if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	if got := c.Take(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
}

func TestSlowConsumerEndsTheConnection(t *testing.T) {
	c := dialClient(t, Config{QueueEvents: 100, Address: afterLogin(t, func(p *peer) {
		for i := range 1000 {
			p.Writef("Event: X\r\nN: %d\r\n\r\n", i)
		}
		p.WaitClosed()
	})})
	if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("got %v", err)
	}

	events := c.Take()
	if len(events) != 100 {
		t.Fatalf("%d events are held", len(events))
	}

	for i, e := range events {
		if e.Get("N") != fmt.Sprint(i) {
			t.Fatalf("event %d is number %s", i, e.Get("N"))
		}
	}
}

func TestSilentPeerIsPinged(t *testing.T) {
	peer := func(p *peer) {
		for range 3 {
			a, err := p.readAction()
			if err != nil || a.Get("Action") != "Ping" {
				return
			}
			p.answer(a, "Response: Success", "Ping: Pong")
		}

		p.Writef("Event: AfterThree\r\n\r\n")
		p.WaitClosed()
	}

	for interval := 20 * time.Millisecond; ; interval *= 4 {
		c := dialClient(t, Config{PingInterval: interval, Address: afterLogin(t, peer)})
		if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, ErrPingTimeout) {
			t.Fatalf("got %v", err)
		}

		events := c.Take()
		if len(events) == 1 && events[0].Name() == "AfterThree" {
			return
		}
		if len(events) > 0 || interval > 2*time.Second {
			t.Fatalf("%d events with pings every %v", len(events), interval)
		} // a slow machine: the peer answered too late
	}
}

// Asterisk 23 can keep an event until it has something to read, and may answer a ping late.
func TestAnEventThatAsteriskKeepsComesByAPing(t *testing.T) {
	c := dialClient(t, Config{PingInterval: 50 * time.Millisecond, Address: afterLogin(t, func(p *peer) {
		for range 3 {
			a, err := p.readAction()
			if err != nil || a.Get("Action") != "Ping" {
				return
			}
		}

		p.Writef("Event: QueueMemberPause\r\n\r\n")
		p.WaitClosed()
	})})
	if e := conntest.TakeEvents(t, c.Conn, 1)[0]; e.Name() != "QueueMemberPause" {
		t.Errorf("got %v", e.Fields)
	}
}
