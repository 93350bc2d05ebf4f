package aisession

import (
	"context"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// ask is something that a provider asked to be done with the call, and that may
// take a while.
type ask struct {
	press       aiprotocol.DTMF
	destination string // to transfer to; "" presses the key
}

const (
	maxAsks      = 32 // that wait
	usualPress   = 160 * time.Millisecond
	longestPress = 5 * time.Second
)

// extra does what a provider that opted in asks for.
func (s *Session) extra(l *link, m *aiprotocol.Message) {
	switch m.Event {
	case aiprotocol.EventClear:
		cleared := s.playout.clear()
		s.tellMarks()
		l.text(func(b []byte) []byte { return aiprotocol.AppendCleared(b, cleared) })
	case aiprotocol.EventMark:
		if !s.playout.mark(m.Mark.Name) {
			s.service.metrics.malformed.WithLabelValues(problemMarks).Inc()
		}
	case aiprotocol.EventHangup:
		s.end(Ending{Reason: ProviderHungUp, Cause: Cause(m.Hangup.Reason)})
	case aiprotocol.EventTransfer:
		s.ask(ask{destination: m.Destination})
	case aiprotocol.EventDTMF:
		s.ask(ask{press: m.DTMF})
	}
}

func (s *Session) ask(a ask) {
	select {
	case s.asks <- a:
	default:
		s.service.metrics.malformed.WithLabelValues(problemAsks).Inc()
	}
}

// doAsked does one thing after another until ctx ends.
func (s *Session) doAsked(ctx context.Context, call Call) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-s.asks:
			s.do(ctx, call, a)
		}
	}
}

func (s *Session) do(ctx context.Context, call Call, a ask) {
	if a.destination == "" {
		duration := a.press.Duration
		if duration == 0 {
			duration = usualPress
		}
		if err := call.Press(ctx, a.press.Digit[0], min(duration, longestPress)); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "a key that the AI provider pressed was not sent", "error", err)
		}
		return
	}
	if err := call.Transfer(ctx, a.destination); err != nil {
		if ctx.Err() == nil {
			s.log.WarnContext(ctx, "a transfer that the AI provider asked for failed", "error", err)
			s.refused(a.destination, err)
		}
		return
	}
	s.end(Ending{Reason: Transferred, Cause: aiprotocol.NormalClearing})
}

// refused tells the provider that a transfer did not come about: the call goes
// on with it.
func (s *Session) refused(destination string, err error) {
	why := "the transfer failed"
	if f := fault.As(err); f.Kind != fault.KindInternal {
		why = f.Message
	}
	if l := s.link.Load(); l != nil {
		l.text(func(b []byte) []byte { return aiprotocol.AppendTransferRefused(b, destination, why) })
	}
}
