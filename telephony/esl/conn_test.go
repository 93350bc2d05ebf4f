package esl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/telephony/eventconn/conntest"
)

func TestDialSaysWhyItFailed(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"wrong password": {func(p *peer) {
			p.Writef("Content-Type: auth/request\n\n")
			p.command()
			p.reply(
				"-ERR invalid")
		}, ErrLoginDenied},
		"access list": {func(p *peer) {
			p.Writef("Content-Type: text/rude-rejection\nContent-Length: 24\n\nAccess Denied, go away.\n")
		}, ErrRejected},
		"goodbye":      {func(p *peer) { p.Writef("Content-Type: text/disconnect-notice\n\n") }, ErrDisconnect},
		"not a switch": {func(p *peer) { p.Writef("HTTP/1.1 400 Bad Request\r\n\r\n") }, ErrMalformed},
		"no auth":      {func(p *peer) { p.output("hello") }, ErrMalformed},
		"closes":       {func(p *peer) {}, io.EOF},
		"half a word":  {func(p *peer) { p.Writef("Content-Type: au") }, io.ErrUnexpectedEOF},
		"says nothing": {func(p *peer) { p.WaitClosed() }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Address: serve(t, test.play), DialTimeout: conntest.Patience}
			if test.want == context.DeadlineExceeded {
				cfg.DialTimeout = 50 * time.Millisecond
			}

			_, err := newClient(t, cfg).Dial(t.Context())
			if !errors.Is(err, test.want) && !(test.want == context.DeadlineExceeded && isTimeout(err)) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), password) {
				t.Fatal("the error shows the password")
			}
		})
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestConnSaysWhyItEnded(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"goodbye": {func(p *peer) {
			p.Writef(
				"Content-Type: text/disconnect-notice\nContent-Length: 4\n\nbye\n")
		}, ErrDisconnect},
		"closed":             {func(p *peer) {}, io.EOF},
		"closed in a header": {func(p *peer) { p.Writef("Content-Length: 12\nConte") }, io.ErrUnexpectedEOF},
		"closed in a body": {func(p *peer) { p.Writef("Content-Type: api/response\nContent-Length: 12\n\nhal") },
			io.ErrUnexpectedEOF},
		"garbage": {func(p *peer) { p.Writef("\x00\xff\xfe garbage\n\n") }, ErrMalformed},
		"endless line": {func(p *peer) { p.Writef("%s", strings.Repeat("x", 1<<20)); p.WaitClosed() },
			ErrTooLarge},
		"endless headers": {func(p *peer) { p.Writef("%s", strings.Repeat("a: b\n", 1<<16)); p.WaitClosed() },
			ErrTooLarge},
		"endless blank lines": {func(p *peer) { p.Writef("%s", strings.Repeat("\n", 1<<20)); p.WaitClosed() },
			ErrTooLarge},
		"huge body": {func(p *peer) {
			p.Writef(
				"Content-Type: api/response\nContent-Length: 99999999\n\n")
			p.WaitClosed()
		}, ErrTooLarge},
		"length overflows": {func(p *peer) {
			p.Writef(
				"Content-Type: api/response\nContent-Length: 99999999999999999999999\n\n")
		}, ErrTooLarge},
		"negative length": {func(p *peer) { p.Writef("Content-Type: api/response\nContent-Length: -1\n\n") },
			ErrMalformed},
		"no content type": {func(p *peer) { p.Writef("Content-Length: 1\n\nx") }, ErrMalformed},
		"unknown content type": {func(p *peer) { p.Writef("Content-Type: text/event-xml\nContent-Length: 1\n\nx") },
			ErrMalformed},
		"reply to nothing":     {func(p *peer) { p.reply("+OK") }, ErrMalformed},
		"event without a name": {func(p *peer) { p.sendEvent("Core-UUID: 1\n\n") }, ErrMalformed},
		"event that is not JSON": {func(p *peer) {
			p.Writef(
				"Content-Type: text/event-json\nContent-Length: 5\n\n{\"a\":")
		}, ErrMalformed},
		"event body too long": {func(p *peer) { p.sendEvent("Event-Name: X\nContent-Length: 9\n\nshort") },
			ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(p *peer) {
				if p.login() {
					test.play(p)
				}
			})

			c := dialClient(t, Config{Address: address, MaxMessage: 64 << 10})
			if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if _, err := c.API(t.Context(), "status"); !errors.Is(err, test.want) {
				t.Fatalf("a command after the end: %v", err)
			}
		})
	}
}

func TestSlowConsumerLosesTheConnectionNotTheMemory(t *testing.T) {
	address := serve(t, func(p *peer) {
		p.login()
		for i := range 1000 {
			p.sendEvent(fmt.Sprintf("Event-Name: X\nEvent-Sequence: %d\n\n", i))
		}
		p.WaitClosed()
	})

	c := dialClient(t, Config{Address: address, QueueEvents: 100})
	if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, ErrQueueFull) {
		t.Fatalf("got %v", err)
	}

	events := c.Take()
	if len(events) != 100 {
		t.Fatalf("%d events are held", len(events))
	}

	for i, e := range events {
		if n, _ := e.Sequence(); n != uint64(i) {
			t.Fatalf("event %d is number %d", i, n)
		}
	}
}

func TestConcurrentCommandsGetTheirOwnReplies(t *testing.T) {
	address := serve(t, func(p *peer) {
		p.login()
		for i := 0; ; i++ {
			command, err := p.command()
			if err != nil {
				return
			}

			if i%3 == 0 {
				p.sendEvent("Event-Name: X\n\n")
			}
			if job, ok := strings.CutPrefix(command, "bgapi "); ok {
				p.reply("+OK Job-UUID: " + job)
				continue
			}

			p.output(strings.TrimPrefix(command, "api "))
		}
	})

	c := dialClient(t, Config{Address: address})
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			want := fmt.Sprintf("echo %d", i)
			if got, err := c.API(t.Context(), want); err != nil || got != want {
				t.Errorf("%q answered %q, %v", want, got, err)
			}

			if i%10 == 0 {
				if err := c.Background(t.Context(), "originate", fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}

	all.Wait()
}

// Commands are sent without waiting for the answers, and not all at once.
func TestAPIsGetTheirAnswersInOrder(t *testing.T) {
	const commands = 3*maxPipelinedCommands + 7
	address := serve(t, func(p *peer) {
		p.login()
		for answered := 0; answered < commands; {
			var read []string
			for len(read) < min(maxPipelinedCommands, commands-answered) { // before the first of them is answered
				command, err := p.command()
				if err != nil {
					return
				}
				read = append(read, strings.TrimPrefix(command, "api "))
			}

			for _, command := range read {
				if answered%10 == 3 {
					command = "-ERR " + command
				}
				p.output(command)
				answered++
			}
		}
	})

	c := dialClient(t, Config{Address: address, MaxPending: 2 * maxPipelinedCommands})
	var all []string
	for i := range commands {
		all = append(all, fmt.Sprint("echo ", i))
	}

	for i, answer := range c.APIBatch(t.Context(), all) {
		if refusal := new(Refusal); i%10 == 3 && !errors.As(answer.Err, &refusal) ||
			i%10 != 3 && (answer.Err != nil || answer.Output != all[i]) {
			t.Errorf("%q answered %+v", all[i], answer)
		}
	}

	c.Close()
	for _, answer := range c.APIBatch(t.Context(), all[:2]) {
		if answer.Err == nil {
			t.Errorf("a closed connection answered %+v", answer)
		}
	}
}

func TestLateReplyIsNobodyElses(t *testing.T) {
	release := make(chan struct{})
	address := serve(t, func(p *peer) {
		p.login()
		first, _ := p.command()
		<-release
		p.output(first)

		for {
			command, err := p.command()
			if err != nil {
				return
			}
			p.output(command)
		}
	})

	c := dialClient(t, Config{Address: address, CommandTimeout: 50 * time.Millisecond})
	if _, err := c.API(t.Context(), "slow"); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := c.API(ctx, "given up"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}

	close(release)
	for _, command := range []string{"one", "two"} {
		got, err := c.API(t.Context(), command)
		for errors.Is(err, ErrTimeout) { // a slow machine
			got, err = c.API(t.Context(), command)
		}

		if err != nil || got != "api "+command {
			t.Fatalf("%q answered %q, %v", command, got, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	address := serve(t, func(p *peer) {
		p.login()
		p.command()
		p.output("-ERR No such channel!\n")
		p.command()
		p.output("-USAGE: <uuid> [cause]\n")
		p.command()
		p.reply("-ERR permission denied")
		p.command()
		p.reply("-ERR command not found")
		p.command()
		p.output("+OK\n")
		p.command()
		p.output("out of step")
		p.WaitClosed()
	})

	c := dialClient(t, Config{Address: address})
	for _, want := range []string{"-ERR No such channel!", "-USAGE: <uuid> [cause]", "-ERR permission denied"} {
		_, err := c.API(t.Context(), "uuid_kill x")
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Reply != want {
			t.Fatalf("got %v, want %q", err, want)
		}
	}

	var refusal *Refusal
	if err := c.Subscribe(t.Context(), "plain", "ALL"); !errors.As(err, &refusal) {
		t.Fatalf("got %v", err)
	}
	if out, err := c.API(t.Context(), "uuid_kill y"); err != nil || out != "+OK\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	if err := c.Background(t.Context(), "originate", "j"); !errors.Is(err, ErrMalformed) {
		t.Fatalf("an api/response to bgapi: %v", err)
	}
	if err := conntest.WaitEnd(t, c.Conn); !errors.Is(err, ErrMalformed) {
		t.Fatalf("replies out of step did not end the connection: %v", err)
	}
}

func TestCommandsThatAreNotSent(t *testing.T) {
	address := serve(t, func(p *peer) { p.login(); p.WaitClosed() })
	c := dialClient(t, Config{Address: address, MaxPending: 2, CommandTimeout: 10 * time.Millisecond})
	for _, command := range []string{"a\nb", "a\rb", "a\x00b"} {
		if _, err := c.API(t.Context(), command); !errors.Is(err, ErrInvalidCommand) {
			t.Errorf("%q: %v", command, err)
		}
	}

	if err := c.Background(t.Context(), "originate", "job\n\nexit"); !errors.Is(err, ErrInvalidCommand) {
		t.Errorf("a job with a line break: %v", err)
	}

	for _, want := range []error{ErrTimeout, ErrTimeout, ErrBusy} {
		if _, err := c.API(t.Context(), "status"); !errors.Is(err, want) {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
}

func TestCloseEndsWaitingCommands(t *testing.T) {
	asked := make(chan struct{})
	address := serve(t, func(p *peer) { p.login(); p.command(); close(asked); p.WaitClosed() })
	c := dialClient(t, Config{Address: address})
	go func() { <-asked; c.Close() }()
	if _, err := c.API(t.Context(), "status"); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

func TestConfigValidate(t *testing.T) {
	good := Config{Address: "a:1", Password: "p"}.WithDefaults()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}

	for name, spoil := range map[string]func(*Config){
		"no address":          func(c *Config) { c.Address = "" },
		"no password":         func(c *Config) { c.Password = "" },
		"password with lines": func(c *Config) { c.Password = "a\n\nexit" },
		"negative timeout":    func(c *Config) { c.CommandTimeout = -1 },
		"queue under message": func(c *Config) { c.QueueBytes = c.MaxMessage - 1 },
	} {
		cfg := good
		spoil(&cfg)
		if cfg.Validate() == nil {
			t.Error(name + " is accepted")
		}
	}
}
