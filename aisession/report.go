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
	maxReports   = 1024 // queue length
	publishLimit = 10 * time.Second
)

// report is the ai.session event. It contains no secrets.
type report struct {
	Event      string  `json:"event"`
	AccountID  string  `json:"account_id"`
	Timestamp  int64   `json:"timestamp"` // Unix seconds
	State      string  `json:"state"`
	SessionID  string  `json:"session_id"`
	ProviderID string  `json:"provider_id"`
	CallID     string  `json:"call_id"`
	Way        string  `json:"way"`
	Reason     Reason  `json:"reason,omitempty"`
	Duration   float64 `json:"duration,omitempty"` // seconds

	trace tracing.Carrier
}

// report queues an event. It drops the event if the queue is full, so that sessions never wait for
// Kafka.
func (s *Service) report(session *Session, state string, reason Reason) {
	r := &session.request
	if r.Ingress == IngressTest {
		return
	}
	one := report{
		Event: "ai.session", AccountID: r.Provider.AccountID, Timestamp: time.Now().Unix(), State: state, SessionID: session.sessionID,
		ProviderID: r.Provider.ID, CallID: r.Call.CallID, Way: r.Ingress, Reason: reason,
		trace: session.trace,
	}
	if state == stateEnded {
		one.Duration = time.Since(session.opened).Round(time.Millisecond).Seconds()
	}
	select {
	case s.events <- one:
	default:
		s.metrics.dropped.events.Inc()
	}
}

// publish publishes events until ctx ends, and then the queued ones.
func (s *Service) publish(ctx context.Context) {
	for {
		select {
		case one := <-s.events:
			s.publishOne(ctx, one)
		case <-ctx.Done():
			for {
				select {
				case one := <-s.events:
					s.publishOne(ctx, one)
				default:
					return
				}
			}
		}
	}
}

func (s *Service) publishOne(ctx context.Context, one report) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishLimit)
	defer cancel()
	data, err := json.Marshal(one)
	if err == nil {
		err = s.deps.Publisher.Publish(one.trace.In(ctx), one.AccountID, data)
	}
	if err != nil {
		s.metrics.dropped.events.Inc()
		s.log.WarnContext(ctx, "publishing an AI session event failed", "session", one.SessionID, "error", err)
	}
}
