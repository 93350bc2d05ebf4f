package aisession

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"trunkline/event"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/tracing"
)

// States in ai.session events.
const (
	stateStarted = "started"
	stateEnded   = "ended"
)

const (
	publisherCount  = 8
	maxQueuedEvents = 128 // queue length of each
	publishTimeout  = 10 * time.Second
)

// queuedEvent is an event that waits for Kafka.
type queuedEvent struct {
	accountID string
	body      any // sessionEvent or transcriptEvent
	trace     tracing.Carrier
}

// eventQueues has the queue of each publisher. A session uses one of them, so that its events keep their order.
type eventQueues [publisherCount]chan queuedEvent

func newEventQueues() (q eventQueues) {
	for i := range q {
		q[i] = make(chan queuedEvent, maxQueuedEvents)
	}
	return q
}

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
}

// transcriptEvent is the call.transcript event. Its text is content of the call: it is never logged.
type transcriptEvent struct {
	Event             string           `json:"event"`
	AccountID         string           `json:"account_id"`
	Timestamp         int64            `json:"timestamp"` // Unix seconds
	CallID            string           `json:"call_id"`
	InteractionID     string           `json:"interaction_id,omitempty"`
	OriginationCallID string           `json:"origination_call_id,omitempty"`
	SessionID         string           `json:"session_id"`
	ProviderID        string           `json:"provider_id"`
	Track             aiprotocol.Track `json:"track"`
	Text              string           `json:"text"`
	Final             bool             `json:"final"`
	StartMS           int64            `json:"start_ms"` // since the session's first audio
	EndMS             int64            `json:"end_ms"`
}

// reportTranscript queues the event of a transcript.
func (s *Session) reportTranscript(t aiprotocol.Transcript) {
	r := &s.request
	account := cmp.Or(r.AccountID, r.Provider.AccountID)
	s.queueEvent(account, transcriptEvent{
		Event: string(event.NameCallTranscript), AccountID: account, Timestamp: time.Now().Unix(),
		CallID: r.Call.CallID, InteractionID: r.InteractionID, OriginationCallID: r.OriginationCallID,
		SessionID: s.sessionID, ProviderID: r.Provider.ID,
		Track: t.Track, Text: t.Text, Final: t.Final, StartMS: t.Start.Milliseconds(), EndMS: t.End.Milliseconds(),
	})
}

// queueEvent queues an event of the session. It drops the event if the queue is full, so that sessions never wait
// for Kafka.
func (s *Session) queueEvent(accountID string, body any) {
	if s.request.Ingress == IngressTest {
		return
	}
	select {
	case s.service.events[s.publisher] <- queuedEvent{accountID, body, s.trace}:
	default:
		s.service.metrics.dropped.events.Inc()
	}
}

// reportState queues the event of a session's new state.
func (s *Service) reportState(session *Session, state string, reason EndReason) {
	r := &session.request
	e := sessionEvent{
		Event: "ai.session", AccountID: r.Provider.AccountID, Timestamp: time.Now().Unix(), State: state,
		SessionID:  session.sessionID,
		ProviderID: r.Provider.ID, CallID: r.Call.CallID, Ingress: r.Ingress, Reason: reason,
	}

	if state == stateEnded {
		e.Duration = time.Since(session.openedAt).Round(time.Millisecond).Seconds()
	}

	session.queueEvent(e.AccountID, e)
}

// publishEvents publishes the events of a queue until ctx ends, and then the queued ones.
func (s *Service) publishEvents(ctx context.Context, queue <-chan queuedEvent) {
	for {
		select {
		case e := <-queue:
			s.publishEvent(ctx, e)
		case <-ctx.Done():
			for {
				select {
				case e := <-queue:
					s.publishEvent(ctx, e)
				default:
					return
				}
			}
		}
	}
}

func (s *Service) publishEvent(ctx context.Context, e queuedEvent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()

	data, err := json.Marshal(e.body)
	if err == nil {
		err = s.deps.Publisher.Publish(e.trace.Extract(ctx), e.accountID, data)
	}
	if err != nil {
		s.metrics.dropped.events.Inc()
		s.log.WarnContext(ctx, "publishing an AI session event failed", "account_id", e.accountID, "error", err)
	}
}
