package aisession

import (
	"context"
	"errors"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/retry"
)

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
	steady     = 10 * time.Second // a connection that lasted this long was stable
)

// outage is one period without a stable connection.
type outage struct {
	retryLimit time.Duration
	since      time.Time // zero while connected

	tried   bool // an attempt was made since then
	backoff retry.Backoff
}

// start records the loss of a connection. If it was stable a new outage begins, otherwise the current
// one continues.
func (o *outage) start(l *link) {
	now := time.Now()
	if o.since.IsZero() || l != nil && now.Sub(l.born) > steady {
		o.since, o.tried = now, false
	} else if l != nil {
		o.since = o.since.Add(now.Sub(l.born))
	}
}

// wait pauses before the next attempt, doubling the pause each time. It returns false when no time is
// left for another attempt.
func (o *outage) wait(ctx context.Context) bool {
	if !o.tried {
		o.tried, o.backoff = true, retry.Backoff{First: firstPause, Max: maxPause}
		return o.remaining() > 0 // no pause before the first attempt
	}
	pause := min(o.backoff.Next(), o.remaining())
	return retry.Sleep(ctx, pause) && o.remaining() > 0
}

func (o *outage) remaining() time.Duration { return o.retryLimit - time.Since(o.since) }

// establish connects. It retries until it succeeds, the outage has lasted too long, an error is final,
// or ctx or the session ends.
func (s *Session) establish(ctx context.Context, o *outage) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with ctx
		select {
		case <-s.endSignal:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := errors.New("the provider was away for too long")
	for o.wait(ctx) {
		try, done := context.WithTimeout(ctx, o.remaining())
		var l *link
		before := err
		if s.service.panics.Do(placeTick, func() { l, err = s.tryConnect(try) }) {
			l, err = nil, errConnectPanicked
		}
		if refused := (*handshakeError)(nil); err != nil && try.Err() != nil && errors.As(before, &refused) {
			err = before // the attempt had no time left: return the earlier error
		}
		done()
		if err == nil {
			s.noteSent(aiprotocol.EventStart)
			s.use(l)
			return nil
		}
		s.service.metrics.connectFailures.Inc()
		if isFinal(err) || s.probe != nil {
			return err
		}
	}
	return errors.Join(err, ctx.Err())
}

var errConnectPanicked = errors.New("connecting to the provider panicked")

// use makes the ticks use a connection.
func (s *Session) use(l *link) {
	s.first.Store(false)
	s.soundAt.Store(time.Now().UnixNano())
	s.playout.restart()
	s.link.Store(l)
	s.service.pacer.add(s, time.Now())
}

// restore replaces a lost connection or ends the session. The caller hears silence meanwhile.
func (s *Session) restore(ctx context.Context, lost *link, o *outage) {
	s.link.CompareAndSwap(lost, nil)
	s.playout.restart()
	cause := lost.cause()
	s.log.InfoContext(ctx, "connection to the AI provider lost", "why", describe(cause))
	switch {
	case errors.Is(cause, websocket.ErrReadLimit):
		s.fallBack(ProviderTooLarge)
		return
	case s.probe != nil:
		s.fallBack(ProviderLost)
		return
	}
	o.start(lost)
	err := s.establish(ctx, o)
	switch {
	case err == nil:
		s.service.metrics.reconnects.Inc()
	case ctx.Err() != nil:
	case isFinal(err):
		s.log.WarnContext(ctx, "AI provider refused the connection", "why", describe(err))
		s.fallBack(ProviderRefused)
	default:
		s.log.WarnContext(ctx, "AI provider unavailable for too long", "why", describe(err))
		s.fallBack(ProviderLost)
	}
}
