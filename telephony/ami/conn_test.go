package ami

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/eventconn/conntest"
)

func TestDialReturnsTheReasonOfAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"wrong secret": {func(p *peer) {
			p.banner()
			a, _ := p.readAction()
			p.answer(a, "Response: Error", "Message: Authentication failed")
		}, ErrLoginDenied},
		"not a manager interface": {func(p *peer) { p.Writef("HTTP/1.1 400 Bad Request\r\n\r\n"); p.WaitClosed() },
			ErrMalformed},
		"endless banner": {func(p *peer) { p.Writef("%s", strings.Repeat("x", 1<<20)); p.WaitClosed() },
			ErrMalformed},
		"closes":                  {func(p *peer) {}, io.EOF},
		"closes after the banner": {func(p *peer) { p.banner() }, io.EOF},
		"sends nothing":           {func(p *peer) { p.WaitClosed() }, context.DeadlineExceeded},
		"does not answer":         {func(p *peer) { p.banner(); p.WaitClosed() }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Address: serve(t, test.play), DialTimeout: conntest.Patience}
			if test.want == context.DeadlineExceeded {
				cfg.DialTimeout = 50 * time.Millisecond
			}

			_, err := newClient(t, cfg).Dial(t.Context())
			reset := test.want == io.EOF && err != nil && strings.Contains(err.Error(), "reset")
			if !errors.Is(err, test.want) && !(test.want == context.DeadlineExceeded && isTimeout(err)) && !reset {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Fatal("the error shows the secret")
			}
		})
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()

	certificates := x509.NewCertPool()
	certificates.AddCert(server.Certificate())
	address := serveTLS(t, &tls.Config{Certificates: server.TLS.Certificates}, func(p *peer) {
		p.login()
		p.WaitClosed()
	})

	dialClient(t, Config{Address: address, TLS: &tls.Config{RootCAs: certificates}})

	address = serveTLS(t, &tls.Config{Certificates: server.TLS.Certificates}, func(p *peer) { p.WaitClosed() })
	_, err := newClient(t, Config{Address: address, TLS: &tls.Config{}}).Dial(t.Context())
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Fatalf("a certificate of an unknown authority: %v", err)
	}
}

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

// A peer that answers a list with responses for ever, or with other actions' ids, costs the
// action and no more.
func TestAnswersWithoutEndEndTheAction(t *testing.T) {
	for name, test := range map[string]struct {
		play func(p *peer, a *Message)
		want error
	}{
		"responses": {func(p *peer, a *Message) { p.answer(a, "Response: Success") }, ErrListTooLarge},
		"events":    {func(p *peer, a *Message) { p.answer(a, "Event: QueueParams", "Queue: q") }, ErrListTooLarge},
		"other ids": {func(p *peer, a *Message) { p.Writef("Response: Success\r\nActionID: other\r\n\r\n") },
			ErrTimeout},
		"without id": {func(p *peer, a *Message) { p.Writef("Response: Success\r\n\r\n") }, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			c := dialClient(t,
				Config{MaxMessage: 4 << 10, MaxList: 64 << 10, ActionTimeout: 200 * time.Millisecond,
					Address: afterLogin(t, func(p *peer) {
						a, err := p.readAction()
						if err != nil {
							return
						}

						for {
							select {
							case <-stop:
								return
							default:
								test.play(p, a)
							}
						}
					})})

			_, err := c.List(t.Context(), "QueueStatus")
			close(stop)
			if !errors.Is(err, test.want) {
				t.Errorf("got %v", err)
			}

			c.mu.Lock()
			defer c.mu.Unlock()

			if len(c.waiters) != 0 {
				t.Errorf("%d waiters are left", len(c.waiters))
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

func TestResponsesOutOfOrderGoToTheirActions(t *testing.T) {
	const all = 500
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		var asked []*Message
		for range all {
			a, err := p.readAction()
			if err != nil {
				return
			}
			asked = append(asked, a)
		}

		for i := len(asked) - 1; i >= 0; i-- {
			if i%3 == 0 {
				p.Writef("Event: X\r\n\r\n")
			}
			p.answer(asked[i], "Response: Success", "Value: "+asked[i].Get("Variable"))
		}

		p.WaitClosed()
	})})

	var waiting sync.WaitGroup
	for i := range all {
		waiting.Go(func() {
			want := fmt.Sprint(i)
			p, err := c.Do(t.Context(), Action{Name: "Getvar", Fields: []Field{{"Variable", want}}})
			if err != nil || p.Get("Value") != want {
				t.Errorf("%s answered %v, %v", want, p, err)
			}
		})
	}

	waiting.Wait()
	if n := len(c.Take()); n != (all+2)/3 {
		t.Errorf("%d events", n)
	}
}

func TestLateResponseAnswersNoOtherAction(t *testing.T) {
	release := make(chan struct{})
	c := dialClient(t, Config{ActionTimeout: 50 * time.Millisecond, Address: afterLogin(t, func(p *peer) {
		first, _ := p.readAction()
		list, _ := p.readAction()
		<-release
		p.answer(first, "Response: Success", "Message: late")
		p.answer(list, "Response: Success", "EventList: start")
		p.answer(list, "Event: QueueMember")
		p.answer(list, "Event: QueueStatusComplete", "EventList: Complete")
		p.Writef("Event: Last\r\n\r\n")
		p.WaitClosed()
	})})
	if _, err := c.Do(t.Context(), Action{Name: "Slow"}); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := c.List(ctx, "QueueStatus"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}

	close(release)
	if events := conntest.TakeEvents(t, c.Conn, 1); len(events) != 1 || events[0].Name() != "Last" {
		t.Fatalf("%d events", len(events))
	}
	if c.Err() != nil || len(c.waiters) != 0 {
		t.Fatalf("%v, %d waiters", c.Err(), len(c.waiters))
	}
}

func TestListCollectsItsEventsAmongOthers(t *testing.T) {
	data := capture(t, "answer-QueueStatus")
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		a, err := p.readAction()
		if err != nil {
			return
		}

		text := strings.ReplaceAll(string(data), "ActionID: a2\r\n", "ActionID: "+a.Get("ActionID")+"\r\n")
		p.Writef("%s", strings.ReplaceAll(text, "\r\n\r\nEvent: QueueMember\r\n",
			"\r\n\r\nEvent: Hangup\r\n\r\nEvent: QueueMember\r\n"))
		a, _ = p.readAction()
		p.answer(a, "Response: Error", "Message: No such queue")
		a, _ = p.readAction()
		p.answer(a, "Response: Success", "EventList: start")
		p.answer(a, "Event: QueueMember")
		p.answer(a, "Event: QueueStatusComplete", "EventList: Cancelled")
		a, _ = p.readAction()
		p.answer(a, "Response: Success", "EventList: start")

		for range 100 {
			p.answer(a, "Event: QueueMember", "Name: "+strings.Repeat("x", 1000))
		}

		p.WaitClosed()
	}), MaxMessage: 8 << 10, MaxList: 50 << 10})

	items, err := c.List(t.Context(), "QueueStatus")
	if err != nil {
		t.Fatal(err)
	}

	if len(items) != 27 {
		t.Errorf("%d items", len(items))
	}

	for _, e := range c.Take() {
		if e.Name() != "Hangup" {
			t.Errorf("%s is not in the list", e.Name())
		}
	}

	var refusal *Refusal
	if _, err := c.List(t.Context(), "QueueStatus", Field{"Queue", "x"}); !errors.As(err, &refusal) ||
		refusal.Message != "No such queue" {
		t.Errorf("an error: %v", err)
	}
	if _, err := c.List(t.Context(), "QueueStatus"); !errors.Is(err, ErrListCancelled) {
		t.Errorf("a cancelled list: %v", err)
	}
	if _, err := c.List(t.Context(), "QueueStatus"); !errors.Is(err, ErrListTooLarge) {
		t.Errorf("a list above the limit: %v", err)
	}
}

// An event with the id of an answered action is an event like any other.
func TestOriginateResponseIsAnEvent(t *testing.T) {
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		a, _ := p.readAction()
		p.answer(a, "Response: Success", "Message: Originate successfully queued")
		p.answer(a, "Event: OriginateResponse", "Response: Failure")
		p.WaitClosed()
	})})
	if _, err := c.Do(t.Context(), Action{Name: "Originate", ID: "call-1"}); err != nil {
		t.Fatal(err)
	}
	if e := conntest.TakeEvents(t, c.Conn, 1)[0]; e.Name() != "OriginateResponse" || e.Get("ActionID") != "call-1" {
		t.Errorf("got %v", e.Fields)
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

func TestActionsThatAreNotSent(t *testing.T) {
	c := dialClient(t,
		Config{Address: afterLogin(t, func(p *peer) { p.WaitClosed() }), MaxPending: 2,
			ActionTimeout: conntest.Patience})

	for _, text := range []string{"a\nb", "a\rb", "a\x00b"} {
		for _, a := range []Action{{Name: text}, {Name: "X", ID: text}, {Name: "X", Fields: []Field{{"K", text}}},
			{Name: "X", Fields: []Field{{text, "v"}}}} {
			if _, err := c.Do(t.Context(), a); !errors.Is(err, ErrInvalidAction) {
				t.Errorf("%q: %v", a, err)
			}
		}
	}

	var waiting sync.WaitGroup
	for _, id := range []string{"one", "two"} {
		waiting.Go(func() {
			if _, err := c.Do(t.Context(), Action{Name: "X", ID: id}); !errors.Is(err, ErrClosed) {
				t.Errorf("got %v", err)
			}
		})
	}

	for pending := 0; pending < 2; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		pending = len(c.waiters)
		c.mu.Unlock()
	}

	if _, err := c.Do(t.Context(), Action{Name: "X"}); !errors.Is(err, ErrBusy) {
		t.Errorf("a third action: %v", err)
	}

	c.Close()
	waiting.Wait()
}

func TestActionIDIsUsedOnceAtATime(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	c := dialClient(t, Config{Address: afterLogin(t, func(p *peer) {
		for i := range 2 {
			a, err := p.readAction()
			if err != nil {
				return
			}

			if i == 0 {
				close(asked)
				<-release
			}

			p.answer(a, "Response: Success")
		}

		p.WaitClosed()
	})})

	done := make(chan error, 1)
	go func() {
		_, err := c.Do(t.Context(), Action{Name: "X", ID: "same"})
		done <- err
	}()

	<-asked
	if _, err := c.Do(t.Context(), Action{Name: "X", ID: "same"}); !errors.Is(err, ErrDuplicateID) {
		t.Errorf("got %v", err)
	}

	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := c.Do(t.Context(), Action{Name: "X", ID: "same"}); err != nil {
		t.Error(err)
	}
}

func TestClientsOfOneRegistryShareTheMetrics(t *testing.T) {
	cfg := Config{Address: "127.0.0.1:1", Username: "u", Secret: "s"}
	deps := Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	first, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := New(cfg, deps); err != nil || second.conn.Metrics.Events != first.conn.Metrics.Events {
		t.Fatalf("a second client of the registry: %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	good := Config{Address: "a:1", Username: "u", Secret: "s"}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}

	for name, spoil := range map[string]func(*Config){
		"no address":          func(c *Config) { c.Address = "" },
		"no user name":        func(c *Config) { c.Username = "" },
		"no secret":           func(c *Config) { c.Secret = "" },
		"secret of lines":     func(c *Config) { c.Secret = "a\r\nAction: X" },
		"mask of lines":       func(c *Config) { c.Events = "on\r\nAction: X" },
		"negative timeout":    func(c *Config) { c.ActionTimeout = -1 },
		"queue under message": func(c *Config) { c.QueueBytes = c.MaxMessage - 1 },
	} {
		cfg := good
		spoil(&cfg)
		if cfg.Validate() == nil {
			t.Error(name + " is accepted")
		}
	}
}
