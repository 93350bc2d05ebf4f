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
	maxRequests         = 32 // queue length
	defaultDTMFDuration = 160 * time.Millisecond
	maxDTMFDuration     = 5 * time.Second
)

// handleExtension handles a message of a provider that opted in to extensions.
func (s *Session) handleExtension(c *providerConn, m *aiprotocol.Message) {
	switch m.Event {
	case aiprotocol.EventClear:
		cleared := s.playout.clear()
		s.sendMarks()
		c.queueText(func(b []byte) []byte { return aiprotocol.AppendCleared(b, cleared) })
	case aiprotocol.EventMark:
		if !s.playout.addMark(m.Mark.Name) {
			s.service.metrics.ignoredMessages.WithLabelValues(problemMarks).Inc()
		}
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
		duration := r.dtmf.Duration
		if duration == 0 {
			duration = defaultDTMFDuration
		}
		err := call.SendDTMF(ctx, r.dtmf.Digit[0], min(duration, maxDTMFDuration))
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "sending a key press of the AI provider failed", "error", err)
		}
		return
	}
	if err := call.Transfer(ctx, r.destination); err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "transfer by the AI provider failed", "error", err)
			s.sendTransferRefused(r.destination, err)
		}
		return
	}
	s.end(Ending{Reason: Transferred, Cause: aiprotocol.NormalClearing})
}

// sendTransferRefused reports a failed transfer to the provider. The call continues with it.
func (s *Session) sendTransferRefused(destination string, err error) {
	message := "the transfer failed"
	f := fault.As(err)
	if f.Kind != fault.KindInternal {
		message = f.Message
	}
	c := s.connection.Load()
	if c != nil {
		c.queueText(func(b []byte) []byte { return aiprotocol.AppendTransferRefused(b, destination, message) })
	}
}
