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
	minRetryPause = 100 * time.Millisecond
	maxRetryPause = 2 * time.Second
	stableAfter   = 10 * time.Second // a connection that lasted this long was stable
)

// outage is one period without a stable connection.
type outage struct {
	retryLimit time.Duration // of the whole outage
	since      time.Time     // zero before the first loss; moved by the time connected since

	attempted bool // an attempt was made in this outage
	backoff   retry.Backoff
}

// recordLoss records the loss of a connection, nil before the first one. If it was stable a new outage begins,
// otherwise the current one continues without the time for which it was connected.
func (o *outage) recordLoss(c *providerConn) {
	now := time.Now()
	if o.since.IsZero() || c != nil && now.Sub(c.connectedAt) > stableAfter {
		o.since, o.attempted = now, false
	} else if c != nil {
		o.since = o.since.Add(now.Sub(c.connectedAt))
	}
}

// waitForRetry pauses before the next attempt, doubling the pause each time. It returns false when no time is
// left for another attempt.
func (o *outage) waitForRetry(ctx context.Context) bool {
	if !o.attempted {
		o.attempted, o.backoff = true, retry.Backoff{First: minRetryPause, Max: maxRetryPause}
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

	err := errors.New("the provider was unavailable for too long")
	for o.waitForRetry(ctx) {
		attemptCtx, done := context.WithTimeout(ctx, o.remaining())
		var c *providerConn
		lastErr := err
		if s.service.panics.Do(placeTick, func() { c, err = s.connectInSpan(attemptCtx) }) {
			c, err = nil, errConnectPanicked
		}

		var handshakeErr *handshakeError
		if err != nil && attemptCtx.Err() != nil && errors.As(lastErr, &handshakeErr) {
			err = lastErr // the attempt had no time left: return the earlier error
		}

		done()
		if err == nil {
			s.recordSent(aiprotocol.EventStart)
			s.setConnection(c)
			return nil
		}

		s.service.metrics.connectFailures.Inc()
		if isPermanent(err) || s.testCall != nil {
			return err
		}
	}

	return errors.Join(err, ctx.Err())
}

var errConnectPanicked = errors.New("connecting to the provider panicked")

// setConnection makes the ticks use a connection.
func (s *Session) setConnection(c *providerConn) {
	s.firstAudioReceived.Store(false)
	s.lastAudioTime.Store(time.Now().UnixNano())
	s.playout.restart()
	s.connection.Store(c)
	s.service.scheduler.startTicks(s, time.Now())
}

// reconnect replaces a lost connection or ends the session. The caller hears silence meanwhile.
func (s *Session) reconnect(ctx context.Context, lost *providerConn, o *outage) {
	s.connection.CompareAndSwap(lost, nil)
	s.playout.restart()
	cause := lost.endError()
	s.log.InfoContext(ctx, "connection to the AI provider lost", "reason", administratorMessage(cause))

	switch {
	case errors.Is(cause, websocket.ErrReadLimit):
		s.endWithFallback(ProviderTooLarge)
		return
	case s.protocol.CloseEndsCall &&
		websocket.IsCloseError(cause, websocket.CloseNormalClosure, websocket.CloseNoStatusReceived):
		s.endWithFallback(ProviderHungUp)
		return
	case s.testCall != nil:
		s.endWithFallback(ProviderLost)
		return
	}

	o.recordLoss(lost)
	err := s.establish(ctx, o)
	switch {
	case err == nil:
		s.service.metrics.reconnects.Inc()
	case ctx.Err() != nil:
	case isPermanent(err):
		s.log.WarnContext(ctx, "AI provider refused the connection", "reason", administratorMessage(err))
		s.endWithFallback(ProviderRefused)
	default:
		s.log.WarnContext(ctx, "AI provider unavailable for too long", "reason", administratorMessage(err))
		s.endWithFallback(ProviderLost)
	}
}
