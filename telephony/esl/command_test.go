package esl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/telephony/eventconn/conntest"
)

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
func TestAPIBatchAnswersInOrder(t *testing.T) {
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
