package aisession

import (
	"context"
	"encoding/json"
	"time"

	"trunkline/internal/tracing"
)

// States in ai.session events.
const (
	stateStarted = "started"
	stateEnded   = "ended"
)

const (
	maxEvents      = 1024 // queue length
	publishTimeout = 10 * time.Second
)

// sessionEvent is the ai.session event. It contains no secrets.
type sessionEvent struct {
	Event      string    `json:"event"`
	AccountID  string    `json:"account_id"`
	Timestamp  int64     `json:"timestamp"` // Unix seconds
	State      string    `json:"state"`
	SessionID  string    `json:"session_id"`
	ProviderID string    `json:"provider_id"`
	CallID     string    `json:"call_id"`
	Ingress    string    `json:"way"`
	Reason     EndReason `json:"reason,omitempty"`
	Duration   float64   `json:"duration,omitempty"` // seconds

	trace tracing.Carrier
}

// reportState queues the event of a session's new state. It drops the event if the queue is full, so
// that sessions never wait for Kafka.
func (s *Service) reportState(session *Session, state string, reason EndReason) {
	r := &session.request
	if r.Ingress == IngressTest {
		return
	}
	e := sessionEvent{
		Event: "ai.session", AccountID: r.Provider.AccountID, Timestamp: time.Now().Unix(), State: state, SessionID: session.sessionID,
		ProviderID: r.Provider.ID, CallID: r.Call.CallID, Ingress: r.Ingress, Reason: reason,
		trace: session.trace,
	}
	if state == stateEnded {
		e.Duration = time.Since(session.opened).Round(time.Millisecond).Seconds()
	}
	select {
	case s.events <- e:
	default:
		s.metrics.dropped.events.Inc()
	}
}

// publishEvents publishes events until ctx ends, and then the queued ones.
func (s *Service) publishEvents(ctx context.Context) {
	for {
		select {
		case e := <-s.events:
			s.publishEvent(ctx, e)
		case <-ctx.Done():
			for {
				select {
				case e := <-s.events:
					s.publishEvent(ctx, e)
				default:
					return
				}
			}
		}
	}
}

func (s *Service) publishEvent(ctx context.Context, e sessionEvent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	data, err := json.Marshal(e)
	if err == nil {
		err = s.deps.Publisher.Publish(e.trace.Extract(ctx), e.AccountID, data)
	}
	if err != nil {
		s.metrics.dropped.events.Inc()
		s.log.WarnContext(ctx, "publishing an AI session event failed", "session", e.SessionID, "error", err)
	}
}
