package trunkline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"
)

// Options holds the options of a subscription.
type Options struct {
	Since    string // event id, cursor or "earliest"; a position in Store takes precedence; "": from now on
	Snapshot bool   // take a snapshot if there is no position, or if it is no longer in the log
	Filters  Filters
	Store    Store         // keeps the position across restarts; nil: none
	Status   func(Status)  // called when the connection changes; nil: not called
	RetryMin time.Duration // 0: 250 ms
	RetryMax time.Duration // 0: 30 s
	Silence  time.Duration // time without data before the connection is replaced; 0: 60 s
}

// Status is a change of the connection: connected if Err is nil, else waiting.
type Status struct {
	Err     error
	RetryIn time.Duration
}

// Item is a snapshot or an event.
type Item struct {
	Snapshot *Snapshot
	Event    *Event
}

// Subscribe iterates over the snapshot, if requested, and every later event once. It reconnects
// until the loop or ctx ends, or an error is permanent, which it yields last. It saves the
// position when the loop requests the next item after an event.
func (c *Client) Subscribe(ctx context.Context, o Options) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		s := &subscription{
			client: c, Options: o, position: o.Since, recentIDs: newRecentIDSet(minRecentIDs),
			backoff: backoff{first: cmp.Or(o.RetryMin, 250*time.Millisecond),
				longest: cmp.Or(o.RetryMax, 30*time.Second)},
			yield: func(item Item) bool { return yield(item, nil) },
		}

		s.Silence = cmp.Or(o.Silence, time.Minute)
		err := s.run(ctx)
		if err != nil && !errors.Is(err, errLoopEnded) && ctx.Err() == nil {
			yield(Item{}, err)
		}
	}
}

// subscription is one subscription: the position, the token, and the ids of delivered events.
type subscription struct {
	Options
	client          *Client
	yield           func(Item) bool
	position, saved string    // after the last event, and as Store has it
	token           string    // "": log in first
	expires, renew  time.Time // the token's end, and when to log in again before it
	backoff         backoff
	recentIDs       *recentIDSet
}

var (
	errLoopEnded = errors.New("the loop ended")
	errRenewal   = errors.New("the token has to be renewed")
)

// run connects until an error is permanent. It also saves the position when the loop or ctx ends.
func (s *subscription) run(ctx context.Context) (err error) {
	if s.Store != nil {
		s.saved, err = s.Store.Load(ctx)
		if err != nil {
			return fmt.Errorf("loading the position: %w", err)
		}
		s.position = cmp.Or(s.saved, s.position)
	}
	defer func() { err = errors.Join(err, s.savePosition(context.WithoutCancel(ctx))) }()

	for {
		began := time.Now()
		err := s.connect(ctx)
		if time.Since(began) > s.backoff.longest {
			s.backoff.reset()
		}

		var failed *storeError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errRenewal):
			continue
		case errors.Is(err, errLoopEnded), errors.As(err, &failed):
			return err
		case errors.Is(err, ErrPositionGone) && s.Snapshot:
			s.position = ""
		case Permanent(err):
			return err
		}

		wait := s.wait(err)
		if s.Status != nil {
			s.Status(Status{err, wait})
		}
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// wait returns the time before the next attempt and drops an invalid token.
func (s *subscription) wait(err error) time.Duration {
	var refused *RefusedError
	isRefused := errors.As(err, &refused)
	expired := errors.Is(err, ErrTokenExpired)
	if expired || isRefused && refused.Status == http.StatusUnauthorized {
		s.token = ""
	}

	wait := s.backoff.next()
	switch {
	case expired || errors.Is(err, ErrRestart):
		return rand.N(wait + 1)
	case isRefused:
		return refused.RetryAfter + wait
	}

	return wait
}

// connect runs one connection until it ends, after a snapshot if one is needed. The error is
// never nil.
func (s *subscription) connect(ctx context.Context) error {
	if err := s.authenticate(ctx); err != nil {
		return err
	}

	if s.Snapshot && s.position == "" {
		snapshot, err := s.client.fetchSnapshot(ctx, s.token)
		if err != nil {
			return err
		}

		if !s.yield(Item{Snapshot: snapshot}) {
			return errLoopEnded
		}

		s.position = snapshot.Cursor
		if err := s.savePosition(ctx); err != nil {
			return err
		}
	}

	return s.read(ctx)
}

// authenticate logs in if there is no token, and renews one that expires soon.
func (s *subscription) authenticate(ctx context.Context) error {
	if s.token != "" && time.Now().Before(s.renew) {
		return nil
	}

	token, life, err := s.client.login(ctx, s.Filters)
	if err != nil {
		untilExpiry := time.Until(s.expires)
		if s.token == "" || untilExpiry <= 0 || Permanent(err) {
			return err
		}
		s.renew = time.Now().Add(untilExpiry / 2) // the old token is still valid
		return nil
	}

	s.token, s.expires = token, time.Now().Add(life)
	s.renew = time.Now().Add(life*8/10 + rand.N(life/10+1))
	return nil
}

// read yields the events of one connection.
func (s *subscription) read(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	limit := min(answerTime, s.Silence)
	late := time.AfterFunc(limit, func() { cancel(fmt.Errorf("connecting: no answer within %s", limit)) })
	body, err := s.client.stream(ctx, s.token, s.position)

	if !late.Stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	defer body.Close()

	if s.Status != nil {
		s.Status(Status{})
	}

	var parser eventStreamParser
	buffer := make([]byte, 32<<10)
	for {
		n, err := s.readBefore(body.Read, buffer, cancel)
		cause := context.Cause(ctx)
		if err != nil && cause != nil {
			return cause
		}
		if err != nil {
			return fmt.Errorf("connection lost: %w", err)
		}

		events, closed := parser.feed(buffer[:n])
		for _, e := range events {
			if err := s.deliver(ctx, e); err != nil {
				return err
			}
		}

		if len(events) > 0 {
			if err := s.savePosition(ctx); err != nil {
				return err
			}
		}

		if closed != nil {
			return closed
		}
	}
}

// readBefore reads until there are bytes. It cancels the connection when the stream is silent or
// the token must be renewed.
func (s *subscription) readBefore(read func([]byte) (int, error), buffer []byte,
	cancel context.CancelCauseFunc) (int, error) {
	limit, cause := s.Silence, fmt.Errorf("connection lost: nothing received for %s", s.Silence)
	untilRenewal := max(0, time.Until(s.renew))
	if untilRenewal < limit {
		limit, cause = untilRenewal, errRenewal
	}

	timer := time.AfterFunc(limit, func() { cancel(cause) })
	defer timer.Stop()

	n, err := read(buffer)
	if n > 0 {
		return n, nil // the next read returns the error again
	}

	return 0, err
}

// deliver yields an event unless it is a repeat.
func (s *subscription) deliver(ctx context.Context, received serverSentEvent) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}

	event := Event{JSON: received.data}
	var mismatch *json.UnmarshalTypeError // a field of another type keeps its zero value
	err := json.Unmarshal(received.data, &event)
	if err != nil && !errors.As(err, &mismatch) {
		return fmt.Errorf("%w: an event is not JSON: %w", ErrProtocol, err)
	}

	if event.ID == "" {
		return fmt.Errorf("%w: an event has no id", ErrProtocol)
	}

	event.Cursor = cmp.Or(received.id, event.ID)
	if s.recentIDs.add(event.ID) && !s.yield(Item{Event: &event}) {
		return errLoopEnded
	}

	s.position = event.Cursor // the loop has requested the next item, so it has processed this one
	s.backoff.reset()
	return nil
}

// storeError is an error of the store, which ends the subscription.
type storeError struct{ err error }

func (e *storeError) Error() string { return "saving the position: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

func (s *subscription) savePosition(ctx context.Context) error {
	if s.Store == nil || s.position == "" || s.position == s.saved {
		return nil
	}
	if err := s.Store.Save(ctx, s.position); err != nil {
		return &storeError{err}
	}
	s.saved = s.position
	return nil
}
