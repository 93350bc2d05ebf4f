package aisession

import (
	"context"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// providerRequest is a provider's request that may take some time to carry out.
type providerRequest struct {
	dtmf        aiprotocol.DTMF
	destination string // to transfer to; "" sends dtmf
}

const (
	maxQueuedRequests   = 32 // queue length
	defaultDTMFDuration = 160 * time.Millisecond
	maxDTMFDuration     = 5 * time.Second
)

// handleExtension handles a message other than audio of a provider that may send it. The caller holds tickMu.
func (s *Session) handleExtension(c *providerConn, m *aiprotocol.Message) {
	switch {
	case m.Event == aiprotocol.EventClear:
		cleared := s.playout.clear()
		// Before DropQueued, which calls what waits for the platform: all marks are told before cleared.
		s.sendMarks()
		queueing, queues := s.call.(QueueingCall)
		if queues {
			queueing.DropQueued()
		}

		c.send(&aiprotocol.Message{Event: aiprotocol.EventCleared, Cleared: cleared})
	case m.Event == aiprotocol.EventMark:
		s.addMark(m.Mark.Name, nil)
	case m.Event == aiprotocol.EventFunction:
		c.send(&aiprotocol.Message{Event: aiprotocol.EventError, Refused: m.Event, Refusal: m.Refusal})
	case m.Event == aiprotocol.EventVendorError:
		s.service.metrics.ignoredMessages.WithLabelValues(problemReported).Inc()
		if !c.providerErrorLogged { // the metric counts the others
			c.providerErrorLogged = true
			s.log.Warn("the AI provider reports an error", "reason", m.Refusal)
		}
	case m.AfterAudio:
		later := *m
		s.addMark("", &later)
	default:
		s.handleRequest(m)
	}
}

// addMark adds a mark that is reported to the provider, or a request, for when the audio so far has been played.
func (s *Session) addMark(name string, request *aiprotocol.Message) {
	if !s.playout.addMark(name, request) {
		s.service.metrics.ignoredMessages.WithLabelValues(problemMarks).Inc()
	}
}

// handleRequest begins what a provider asked for.
func (s *Session) handleRequest(m *aiprotocol.Message) {
	switch m.Event {
	case aiprotocol.EventHangup:
		s.end(Ending{Reason: ProviderHungUp, Cause: NormalizeHangupCause(m.Hangup.Reason)})
	case aiprotocol.EventTransfer:
		s.queueRequest(providerRequest{destination: m.Destination})
	case aiprotocol.EventDTMF:
		s.queueRequest(providerRequest{dtmf: m.DTMF})
	}
}

func (s *Session) queueRequest(r providerRequest) {
	select {
	case s.requests <- r:
	default:
		s.service.metrics.ignoredMessages.WithLabelValues(problemRequests).Inc()
	}
}

// runRequests carries out requests one at a time until ctx ends.
func (s *Session) runRequests(ctx context.Context, call Call) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.requests:
			s.runRequest(ctx, call, r)
		}
	}
}

func (s *Session) runRequest(ctx context.Context, call Call, r providerRequest) {
	if r.destination == "" {
		s.pressKey(ctx, call, r.dtmf)
		return
	}

	if err := s.transferCall(ctx, call, r.destination); err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "transfer by the AI provider failed", "error", err)
			s.sendTransferRefused(r.destination, err)
		}
		return
	}

	s.end(Ending{Reason: Transferred, Cause: aiprotocol.NormalClearing})
}

// pressKey sends a key press of the provider in the call. The provider is told if that fails.
func (s *Session) pressKey(ctx context.Context, call Call, press aiprotocol.DTMF) {
	duration := press.Duration
	if duration == 0 {
		duration = defaultDTMFDuration
	}

	err := call.SendDTMF(ctx, press.Digit[0], min(duration, maxDTMFDuration))
	if err == nil || ctx.Err() != nil {
		return
	}

	s.log.WarnContext(ctx, "sending a key press of the AI provider failed", "error", err)
	s.service.metrics.ignoredMessages.WithLabelValues(problemKeys).Inc()
	c := s.connection.Load()
	if c != nil {
		message := refusal(err, "the key could not be sent")
		c.send(&aiprotocol.Message{Event: aiprotocol.EventError, Refused: aiprotocol.EventDTMF, Refusal: message})
	}
}

// sendTransferRefused reports a failed transfer to the provider. The call continues with it.
func (s *Session) sendTransferRefused(destination string, err error) {
	message := refusal(err, "the transfer failed")
	c := s.connection.Load()
	if c != nil {
		c.send(&aiprotocol.Message{Event: aiprotocol.EventTransfer, Destination: destination, Refusal: message})
	}
}

// refusal returns what a provider is told of an error: internal, of one that says nothing to others.
func refusal(err error, internal string) string {
	f := fault.As(err)
	if f.Kind != fault.KindInternal {
		return f.Message
	}
	return internal
}
