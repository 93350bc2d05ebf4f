package esl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// API runs an api command and returns its output. The error is a *Refusal if the switch answered -ERR
// or -USAGE. The switch runs a connection's api commands one at a time and sends no events meanwhile,
// so use API for quick commands only.
func (c *Conn) API(ctx context.Context, command string) (string, error) {
	return c.output(c.roundTrip(ctx, "api "+command))
}

// Answer is the output of an api command. Err is an error of API.
type Answer struct {
	Output string
	Err    error
}

// apisAhead is the number of commands that APIs sends before it waits for the first
// of their answers.
const apisAhead = 64

// APIs runs api commands as API does and returns their answers in the same order. A
// command does not wait for the answer to the one before it.
func (c *Conn) APIs(ctx context.Context, commands []string) []Answer {
	answers := make([]Answer, len(commands))
	waiters := make([]*waiter, len(commands))
	for i := range len(commands) + apisAhead {
		if i < len(commands) {
			waiters[i] = &waiter{reply: make(chan frame, 1)}
			answers[i].Err = c.send(waiters[i], "api "+commands[i])
		}
		if at := i - apisAhead; at >= 0 && answers[at].Err == nil {
			answers[at].Output, answers[at].Err = c.output(c.await(ctx, waiters[at]))
		}
	}
	return answers
}

// output returns the output in the reply to an api command.
func (c *Conn) output(f frame, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if f.kind() == typeReply { // this user is not permitted to run it
		return "", c.result(unexpected(f))
	}
	out := string(f.body)
	return out, c.result(parseRefusal(out))
}

// Background starts a command with bgapi and returns when the switch has accepted it. The output
// arrives as the BACKGROUND_JOB event whose Job-UUID is job.
func (c *Conn) Background(ctx context.Context, command, job string) error {
	return c.runCommand(ctx, "bgapi "+command, "Job-UUID: "+job)
}

// Subscribe subscribes to events by name, or "ALL". format is "plain" or "json".
func (c *Conn) Subscribe(ctx context.Context, format string, events ...string) error {
	return c.runCommand(ctx, "event "+format+" "+strings.Join(events, " "))
}

// Filter limits the subscribed events to those whose header has the value, or matches it if it is a
// "/regular expression/". Each further filter adds events.
func (c *Conn) Filter(ctx context.Context, header, value string) error {
	return c.runCommand(ctx, "filter "+header+" "+value)
}

// Post sends an api command without waiting for its reply.
func (c *Conn) Post(command string) error {
	return c.send(&waiter{}, "api "+command)
}

// runCommand runs a command that the switch answers with command/reply.
func (c *Conn) runCommand(ctx context.Context, lines ...string) error {
	f, err := c.roundTrip(ctx, lines...)
	if err != nil {
		return err
	}
	if f.kind() != typeReply || !strings.HasPrefix(f.headers.get("Reply-Text"), "+OK") {
		return c.result(unexpected(f))
	}
	return c.result(nil)
}

// unexpected returns the error for a reply that is neither +OK nor of the command's kind.
func unexpected(f frame) error {
	if err := parseRefusal(f.headers.get("Reply-Text")); err != nil {
		return err
	}
	return fmt.Errorf("%w: reply does not match its command", ErrMalformed)
}

// result counts an answered command. It ends the connection after a reply of the wrong kind, because
// commands and replies are then out of step.
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

// roundTrip sends a command and waits for its reply.
func (c *Conn) roundTrip(ctx context.Context, lines ...string) (frame, error) {
	w := &waiter{reply: make(chan frame, 1)}
	if err := c.send(w, lines...); err != nil {
		return frame{}, err
	}
	return c.await(ctx, w)
}

// await waits for the reply to a command that was sent, at most CommandTimeout.
func (c *Conn) await(ctx context.Context, w *waiter) (frame, error) {
	timeout := time.NewTimer(c.client.cfg.CommandTimeout)
	defer timeout.Stop()
	select {
	case f := <-w.reply:
		return f, nil
	case <-c.endSignal:
		select { // the reply may have arrived just before the end
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

// send adds a command's waiter to the queue and writes the command, in the same order for all
// commands. It waits for the socket for at most CommandTimeout and ends the connection after that,
// because part of the command may have been written.
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
