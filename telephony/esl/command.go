package esl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// API runs an api command and returns its output. The error is a *Refusal when
// the switch answered with -ERR or -USAGE. The switch runs api commands one
// after the other, and sends no event meanwhile: only quick ones belong here.
func (c *Conn) API(ctx context.Context, command string) (string, error) {
	f, err := c.ask(ctx, "api "+command)
	if err != nil {
		return "", err
	}
	if f.kind() == typeReply { // not permitted to this user
		return "", c.result(unexpected(f))
	}
	out := string(f.body)
	return out, c.result(parseRefusal(out))
}

// Background starts a command in the switch; its output comes as the
// BACKGROUND_JOB event with this Job-UUID. It returns once the switch has
// accepted it.
func (c *Conn) Background(ctx context.Context, command, job string) error {
	return c.order(ctx, "bgapi "+command, "Job-UUID: "+job)
}

// Subscribe asks for events, "ALL" or names, as text/event-plain or
// text/event-json: format is "plain" or "json".
func (c *Conn) Subscribe(ctx context.Context, format string, events ...string) error {
	return c.order(ctx, "event "+format+" "+strings.Join(events, " "))
}

// Filter lets only those of the subscribed events through in which the header
// has the value, or matches it where it is a "/regular expression/". Each
// further filter lets more through.
func (c *Conn) Filter(ctx context.Context, header, value string) error {
	return c.order(ctx, "filter "+header+" "+value)
}

// Tell sends an api command and does not wait for its reply.
func (c *Conn) Tell(command string) error {
	return c.send(&waiter{}, "api "+command)
}

// order is a command that is answered with command/reply.
func (c *Conn) order(ctx context.Context, lines ...string) error {
	f, err := c.ask(ctx, lines...)
	if err != nil {
		return err
	}
	if f.kind() != typeReply || !strings.HasPrefix(f.headers.get("Reply-Text"), "+OK") {
		return c.result(unexpected(f))
	}
	return c.result(nil)
}

// unexpected is a reply that is neither +OK nor of the command's kind.
func unexpected(f frame) error {
	if err := parseRefusal(f.headers.get("Reply-Text")); err != nil {
		return err
	}
	return fmt.Errorf("%w: a reply of another kind than its command's", ErrMalformed)
}

// result counts a command that was answered. A reply of the wrong kind means
// that replies and commands are no longer in step, so it ends the connection.
func (c *Conn) result(err error) error {
	label := "ok"
	if errors.Is(err, ErrMalformed) {
		label = "broken"
		c.end(err)
	} else if err != nil {
		label = "refused"
	}
	c.client.metrics.commands.WithLabelValues(label).Inc()
	return err
}

// ask sends a command and waits for its reply.
func (c *Conn) ask(ctx context.Context, lines ...string) (frame, error) {
	w := &waiter{reply: make(chan frame, 1)}
	if err := c.send(w, lines...); err != nil {
		return frame{}, err
	}
	timeout := time.NewTimer(c.client.cfg.CommandTimeout)
	defer timeout.Stop()
	select {
	case f := <-w.reply:
		return f, nil
	case <-c.endSignal:
		select { // it may have come just before the end
		case f := <-w.reply:
			return f, nil
		default:
			c.client.metrics.commands.WithLabelValues("broken").Inc()
			return frame{}, c.Err()
		}
	case <-ctx.Done():
		c.client.metrics.commands.WithLabelValues("timeout").Inc()
		return frame{}, ctx.Err()
	case <-timeout.C:
		c.client.metrics.commands.WithLabelValues("timeout").Inc()
		return frame{}, ErrTimeout
	}
}

// send writes a command and puts its waiter in line, both in the same order.
// It may wait for the socket, at most CommandTimeout; then the connection has
// ended, for half a command may be out.
func (c *Conn) send(w *waiter, lines ...string) error {
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return ErrCommand
		}
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.enqueue(w); err != nil {
		return err
	}
	err := c.net.SetWriteDeadline(time.Now().Add(c.client.cfg.CommandTimeout))
	if err == nil {
		_, err = io.WriteString(c.net, strings.Join(lines, "\n")+"\n\n")
	}
	if err != nil {
		c.end(fmt.Errorf("writing to the event socket: %w", err))
		c.client.metrics.commands.WithLabelValues("broken").Inc()
		return c.Err()
	}
	return nil
}

func (c *Conn) enqueue(w *waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endReason != nil {
		c.client.metrics.commands.WithLabelValues("broken").Inc()
		return c.endReason
	}
	if len(c.waiters) >= c.client.cfg.MaxPending {
		c.client.metrics.commands.WithLabelValues("busy").Inc()
		return ErrBusy
	}
	c.waiters = append(c.waiters, w)
	return nil
}
