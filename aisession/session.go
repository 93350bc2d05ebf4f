package aisession

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/tracing"
	"trunkline/telephony/audio"
)

// Session is one call's audio at one provider, over as many connections as that
// takes. Heard, Pressed and HungUp are for the call; they never wait and may be
// called by any goroutine, also when the session has ended.
type Session struct {
	service   *Service
	sessionID string
	request   Request
	log       *slog.Logger
	opened    time.Time
	span      tracing.Span // of its life
	trace     tracing.Carrier

	callerAudio *audio.Jitter
	toProvider  *audio.Path
	playout     *playout
	toCall      *audio.Path
	schedule    schedule // in the pacer

	link atomic.Pointer[link] // nil while there is none

	endOnce   sync.Once
	endSignal chan struct{} // closed: over says how
	ending    Ending
	probe     *probe // of a test, which sees every message and connects once; else nil
	requests  chan providerRequest
	first     atomic.Bool  // the provider has been heard since its start
	soundAt   atomic.Int64 // Unix nanoseconds: audio came last from the provider, or the start was said

	ticking sync.Mutex // of what follows, and of the paths
	call    Call       // nil before Run and after
	scratch []byte     // a packet
	frame   []byte     // a frame that goes out
	spokeAt time.Time  // the caller was loud last
}

// ID is unique among all sessions.
func (s *Session) ID() string { return s.sessionID }

// Provider is whose session it is.
func (s *Session) Provider() aiprovider.Provider { return s.request.Provider }

func (s *Session) start() aiprotocol.Start {
	r := &s.request
	caller, callee := r.Caller, r.Callee
	if e164 := s.service.deps.E164; e164 != nil {
		caller, callee = e164(r.Provider.AccountID, caller), e164(r.Provider.AccountID, callee)
	}
	return aiprotocol.Start{
		Call: r.Call, CallerIDNumber: caller, CalleeIDNumber: callee,
		AccountID: r.Provider.AccountID, Media: r.Provider.Format,
	}
}

// Heard takes a packet of the caller's audio, in the call's format. payload is
// copied.
func (s *Session) Heard(timestamp uint32, payload []byte) {
	missed := s.callerAudio.Put(timestamp, payload)
	if s.service.pacer.packetArrived(s, time.Now(), missed) {
		s.callerAudio.Skip() // from now on the ticks wait for such packets
	}
}

// Pressed takes a key press of the caller, once it has ended.
func (s *Session) Pressed(digit byte, duration time.Duration) {
	press := aiprotocol.DTMF{Call: s.request.Call, Digit: string(digit), Duration: duration}
	if l := s.link.Load(); l != nil && aiprotocol.IsDigit(press.Digit) {
		if !l.text(func(b []byte) []byte { return aiprotocol.AppendDTMF(b, press) }) {
			s.service.metrics.dropped.control.Inc()
		}
	}
}

// HungUp ends the session because the call has ended. cause is as Cause takes
// it.
func (s *Session) HungUp(cause string) { s.end(Ending{Reason: CallerHungUp, Cause: Cause(cause)}) }

// Ended is closed when the session is about to end, whoever ends it.
func (s *Session) Ended() <-chan struct{} { return s.endSignal }

// end lets the first reason count.
func (s *Session) end(e Ending) {
	s.endOnce.Do(func() {
		s.ending = e
		close(s.endSignal)
	})
}

// fallBack ends the session for want of a provider: the fallback acts.
func (s *Session) fallBack(reason Reason) {
	s.end(Ending{
		Reason: reason, Cause: aiprotocol.NormalClearing,
		HandBack: s.request.Provider.Fallback == aiprovider.FallbackReturn,
	})
}

// Run carries the call's audio until the call, the provider or ctx ends the
// session. It returns when the call has been released and the provider has been
// told.
func (s *Session) Run(ctx context.Context, call Call) Ending {
	s.attach(call)
	var asking sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer asking.Wait()
	defer cancel()
	if s.request.Provider.Extensions {
		asking.Go(func() { s.runRequests(ctx, call) })
	}
	silence, stop := s.watchSilence()
	defer stop()
	flaps := outage{limit: s.service.cfg.GiveUp}
	for {
		l, lost := s.current()
		select {
		case <-s.endSignal:
			s.detach()
			cancel()
			s.release(call)
			s.hangUpProvider()
			return s.ending
		case <-ctx.Done():
			s.end(Ending{Reason: CallerHungUp, Cause: aiprotocol.NormalClearing})
		case <-silence:
			s.checkSilence()
		case <-lost:
			s.restore(ctx, l, &flaps)
		}
	}
}

// current is the connection there is, and what says that it is lost.
func (s *Session) current() (*link, <-chan struct{}) {
	if l := s.link.Load(); l != nil {
		return l, l.lost
	}
	return nil, nil
}

func (s *Session) release(call Call) {
	if s.ending.Reason != Transferred {
		call.Release(s.ending)
	}
}

// attach gives the call its part in the ticks. What the caller said before is
// not the provider's.
func (s *Session) attach(call Call) {
	s.callerAudio.Reset()
	s.ticking.Lock()
	s.call = call
	s.ticking.Unlock()
	s.service.pacer.followCall(s, true)
}

// detach ends the call's part in the ticks: it hears nothing after it.
func (s *Session) detach() {
	s.service.pacer.followCall(s, false)
	s.ticking.Lock()
	defer s.ticking.Unlock()
	s.call = nil
}

// Close ends a session that was opened and not Run: the call did not come about.
func (s *Session) Close(cause string) {
	s.HungUp(cause)
	s.hangUpProvider()
}

// hangUpProvider says hangup and closes, and waits until that is out.
func (s *Session) hangUpProvider() {
	if l := s.link.Load(); l != nil {
		reason := s.ending.Cause
		l.text(func(b []byte) []byte {
			return aiprotocol.AppendHangup(b, aiprotocol.Hangup{Call: s.request.Call, Reason: reason})
		})
		s.noteSent(aiprotocol.EventHangup)
		l.sendClose()
		<-l.lost
	}
	s.service.closed(s)
}

// noteSent tells a test of a message to the provider.
func (s *Session) noteSent(event aiprotocol.Event) {
	if s.probe != nil {
		s.probe.note(event, &s.probe.said)
	}
}

// noteReceived tells a test of a message from the provider.
func (s *Session) noteReceived(event aiprotocol.Event) {
	if s.probe != nil {
		s.probe.note(event, &s.probe.got)
	}
}

// watchSilence ticks while there is a limit to a provider's silence.
func (s *Session) watchSilence() (<-chan time.Time, func()) {
	limit := s.service.cfg.SilenceTimeout
	if limit == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(max(limit/4, 10*time.Millisecond))
	return ticker.C, ticker.Stop
}

func (s *Session) checkSilence() {
	since := time.Since(time.Unix(0, s.soundAt.Load()))
	if since > s.service.cfg.SilenceTimeout && !s.playout.hasAudio() {
		s.fallBack(ProviderSilent)
	}
}
