package ami

import (
	"context"
	"errors"
	"strings"

	"trunkline/telephony/eventconn"
)

// Action is a request to Asterisk.
type Action struct {
	Name string
	// ID is the ActionID, which the response and later events such as OriginateResponse repeat. For ""
	// the connection chooses an id; later events with a chosen id are dropped.
	ID     string
	Fields []Field // a key may be repeated
}

// waiter waits for the response to an action, or for the end of its list.
type waiter struct {
	wantsList bool
	done      chan actionResult // has capacity 1
	progress  chan struct{}     // has capacity 1; receives a token when a part of the list has arrived
	items     []*Message        // the events of the list so far
	bytes     int               // memory of all that has arrived for a list, for Config.MaxList
}

// actionResult is what Asterisk answered to an action: a response or, to a list action, its events.
type actionResult struct {
	response *Message
	items    []*Message
	err      error
}

// reportProgress makes eventconn.Wait restart its timeout.
func (w *waiter) reportProgress() {
	select {
	case w.progress <- struct{}{}:
	default:
	}
}

// Do sends an action and returns its response. The error is a *Refusal if Asterisk answered Error.
func (c *Conn) Do(ctx context.Context, a Action) (*Message, error) {
	result := c.roundTrip(ctx, a, false)
	return result.response, result.err
}

// List sends a list action, such as QueueStatus, and returns its events without the last one, whose
// EventList is Complete.
func (c *Conn) List(ctx context.Context, name string, fields ...Field) ([]*Message, error) {
	result := c.roundTrip(ctx, Action{Name: name, Fields: fields}, true)
	return result.items, result.err
}

// roundTrip sends an action, waits for its result, and counts it.
func (c *Conn) roundTrip(ctx context.Context, a Action, list bool) actionResult {
	if a.ID == "" {
		a.ID = c.newID()
	}

	w := &waiter{wantsList: list, done: make(chan actionResult, 1), progress: make(chan struct{}, 1)}
	result := actionResult{err: c.enqueue(a.ID, w)}
	if result.err == nil {
		defer c.removeWaiter(a.ID, w)
		result.err = c.write(a)
	}
	if result.err == nil {
		var err error
		result, err = eventconn.Wait(ctx, c.Conn, w.done, w.progress)
		if err != nil {
			result.err = err
		}
	}

	err := result.err
	var refusal *Refusal
	c.client.connConfig.CountRequest(err,
		errors.As(err, &refusal) || errors.Is(err, ErrInvalidAction) || errors.Is(err, ErrDuplicateID) ||
			errors.Is(err, ErrListCancelled) || errors.Is(err, ErrListTooLarge))

	return result
}

func (c *Conn) enqueue(id string, w *waiter) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case c.Err() != nil:
		return c.Err()
	case len(c.waiters) >= c.client.cfg.MaxPending:
		return ErrBusy
	case c.waiters[id] != nil:
		return ErrDuplicateID
	}

	c.waiters[id] = w
	return nil
}

// removeWaiter removes the waiter of an action that is no longer waited for, if it exists.
func (c *Conn) removeWaiter(id string, w *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiters[id] == w {
		delete(c.waiters, id)
	}
}

// write writes an action.
func (c *Conn) write(a Action) error {
	text, err := a.encode()
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	return eventconn.Write(c.Conn, text)
}

func (a Action) encode() (string, error) {
	var b strings.Builder
	for _, f := range append([]Field{{"Action", a.Name}, {"ActionID", a.ID}}, a.Fields...) {
		if strings.ContainsAny(f.Key, lineBreaks+":") || strings.ContainsAny(f.Value, lineBreaks) {
			return "", ErrInvalidAction
		}
		b.WriteString(f.Key + ": " + f.Value + "\r\n")
	}
	b.WriteString("\r\n")
	return b.String(), nil
}
