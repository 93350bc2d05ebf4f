package esl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"trunkline/telephony/eventconn"
)

// API runs an api command and returns its output. The error is a *Refusal if the switch answered -ERR
// or -USAGE. The switch runs a connection's api commands one at a time and sends no events meanwhile,
// so use API for quick commands only.
func (c *Conn) API(ctx context.Context, command string) (string, error) {
	return c.parseOutput(c.roundTrip(ctx, "api "+command))
}

// APIResult is the output of an api command. Err is an error of API.
type APIResult struct {
	Output string
	Err    error
}

// maxPipelinedCommands is the number of commands that APIBatch sends before it waits for the first response.
const maxPipelinedCommands = 64

// APIBatch runs api commands as API does and returns their answers in the same order. It sends a command
// before the response to the previous one has arrived.
func (c *Conn) APIBatch(ctx context.Context, commands []string) []APIResult {
	answers := make([]APIResult, len(commands))
	replies := make([]chan frame, len(commands))
	for i := range len(commands) + maxPipelinedCommands {
		if i < len(commands) {
			replies[i], answers[i].Err = c.send("api " + commands[i])
		}

		index := i - maxPipelinedCommands
		if index >= 0 {
			var f frame
			if answers[index].Err == nil {
				f, answers[index].Err = eventconn.Wait(ctx, c.Conn, replies[index], nil)
			}
			answers[index].Output, answers[index].Err = c.parseOutput(f, answers[index].Err)
		}
	}

	return answers
}

// parseOutput returns the output in the reply to an api command, and counts the command.
func (c *Conn) parseOutput(f frame, err error) (string, error) {
	out := string(f.body)
	if err == nil && f.contentType() == typeReply { // the user is not permitted to run the command
		err = replyError(f)
	} else if err == nil {
		err = parseRefusal(out)
	}
	return out, c.finishCommand(err)
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

// runCommand runs a command that the switch answers with command/reply.
func (c *Conn) runCommand(ctx context.Context, lines ...string) error {
	f, err := c.roundTrip(ctx, lines...)
	if err == nil && (f.contentType() != typeReply || !strings.HasPrefix(f.headers.first("Reply-Text"), "+OK")) {
		err = replyError(f)
	}
	return c.finishCommand(err)
}

// replyError returns the error for a reply that is neither +OK nor of the command's kind.
func replyError(f frame) error {
	if err := parseRefusal(f.headers.first("Reply-Text")); err != nil {
		return err
	}
	return fmt.Errorf("%w: reply does not match its command", ErrMalformed)
}

// finishCommand counts a command. It ends the connection after a reply of the wrong kind, because commands and
// replies are then out of step.
func (c *Conn) finishCommand(err error) error {
	if errors.Is(err, ErrMalformed) {
		eventconn.End(c.Conn, err)
	}
	var refusal *Refusal
	c.client.connConfig.CountRequest(err, errors.As(err, &refusal) || errors.Is(err, ErrInvalidCommand))
	return err
}

// roundTrip sends a command and waits for its reply.
func (c *Conn) roundTrip(ctx context.Context, lines ...string) (frame, error) {
	reply, err := c.send(lines...)
	if err != nil {
		return frame{}, err
	}
	return eventconn.Wait(ctx, c.Conn, reply, nil)
}

// send adds a waiter for a command's reply to the queue and writes the command, in the same order for
// all commands.
func (c *Conn) send(lines ...string) (reply chan frame, err error) {
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			return nil, ErrInvalidCommand
		}
	}

	c.writing.Lock()
	defer c.writing.Unlock()

	reply, err = c.enqueue()
	if err != nil {
		return nil, err
	}

	return reply, eventconn.Write(c.Conn, strings.Join(lines, "\n")+"\n\n")
}

func (c *Conn) enqueue() (reply chan frame, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if err := c.Err(); err != nil {
		return nil, err
	}
	if len(c.waiters) >= c.client.cfg.MaxPending {
		return nil, ErrBusy
	}

	reply = make(chan frame, 1)
	c.waiters = append(c.waiters, reply)
	return reply, nil
}

// parseRefusal returns the *Refusal in a reply, or nil if the reply does not start with "-ERR" or
// "-USAGE".
func parseRefusal(text string) error {
	if !strings.HasPrefix(text, "-ERR") && !strings.HasPrefix(text, "-USAGE") {
		return nil
	}
	text = strings.TrimSpace(text)
	return &Refusal{Reply: text[:min(len(text), 200)]}
}
