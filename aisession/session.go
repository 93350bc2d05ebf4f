package aisession

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/tracing"
	"trunkline/telephony/audio"
)

// Session carries one call's audio to and from one provider, over one connection at a time. The call's
// ingress uses ReceiveAudio, ReceiveDTMF and CallEnded; they never block and may be called from any
// goroutine, also after the session has ended.
type Session struct {
	service   *Service
	sessionID string
	request   Request
	protocol  dialect.Protocol
	log       *slog.Logger
	opened    time.Time
	span      tracing.Span // span of the session's life
	trace     tracing.Carrier

	callerAudio *audio.JitterBuffer
	toProvider  *audio.Transcoder
	playout     *playout
	toCall      *audio.Transcoder
	schedule    schedule // used by the pacer

	connection atomic.Pointer[providerConn] // nil while there is no connection

	endOnce            sync.Once
	endSignal          chan struct{} // closed after ending is set
	ending             Ending
	probe              *probe // set for a test, which records every message and connects once
	requests           chan providerRequest
	firstAudioReceived atomic.Bool  // the provider's first audio has arrived
	lastAudioTime      atomic.Int64 // Unix nanoseconds of the provider's last audio, or of the start message

	tickMu         sync.Mutex // guards the following fields and the transcoders
	call           Call       // nil before and after Run
	scratch        []byte     // buffer of a packet
	frame          []byte     // buffer of an outgoing frame
	lastSpeechTime time.Time  // when the caller last spoke
}

// ID returns the session's unique id.
func (s *Session) ID() string { return s.sessionID }

// Provider returns the session's provider.
func (s *Session) Provider() aiprovider.Provider { return s.request.Provider }

func (s *Session) startMessage() aiprotocol.Start {
	r := &s.request
	caller, callee := r.Caller, r.Callee
	e164 := s.service.deps.FormatE164
	if e164 != nil {
		caller, callee = e164(r.Provider.AccountID, caller), e164(r.Provider.AccountID, callee)
	}
	return aiprotocol.Start{
		Call: r.Call, CallerIDNumber: caller, CalleeIDNumber: callee,
		AccountID: r.Provider.AccountID, Media: r.Provider.Format, SessionID: s.sessionID, Parameters: r.Parameters,
	}
}

func (s *Session) dialectConfig() dialect.Config {
	p := &s.request.Provider
	return dialect.Config{Secret: p.Secret, Session: p.Session, Extensions: p.Extensions, Format: p.Format}
}

// takesRequests reports whether the provider may send more than audio.
func (s *Session) takesRequests() bool {
	return s.protocol.Requests || s.request.Provider.Extensions
}

// ReceiveAudio adds a packet of the caller's audio, in the call's format. It copies payload.
func (s *Session) ReceiveAudio(timestamp uint32, payload []byte) {
	missed := s.callerAudio.Put(timestamp, payload)
	if s.service.pacer.packetArrived(s, time.Now(), missed) {
		s.callerAudio.Skip() // later ticks wait for such packets
	}
}

// ReceiveDTMF passes a digit from the caller to the provider.
func (s *Session) ReceiveDTMF(digit byte, duration time.Duration) {
	dtmf := aiprotocol.DTMF{Call: s.request.Call, Digit: string(digit), Duration: duration}
	c := s.connection.Load()
	if c != nil && aiprotocol.IsDigit(dtmf.Digit) {
		c.send(&aiprotocol.Message{Event: aiprotocol.EventDTMF, DTMF: dtmf})
	}
}

// CallEnded ends the session because the call has ended. cause is converted with NormalizeHangupCause.
func (s *Session) CallEnded(cause string) {
	s.end(Ending{Reason: CallerHungUp, Cause: NormalizeHangupCause(cause)})
}

// Ended returns a channel that is closed when the session begins to end, for any reason.
func (s *Session) Ended() <-chan struct{} { return s.endSignal }

// end ends the session. The first call sets the reason.
func (s *Session) end(e Ending) {
	s.endOnce.Do(func() {
		s.ending = e
		close(s.endSignal)
	})
}

// endWithFallback ends the session with the provider's fallback action, because the provider has failed.
func (s *Session) endWithFallback(reason EndReason) {
	s.end(Ending{
		Reason: reason, Cause: aiprotocol.NormalClearing,
		ReturnToDialplan: s.request.Provider.Fallback == aiprovider.FallbackReturn,
	})
}

// Run serves the call until the call, the provider or ctx ends the session. It returns when
// the call has been released and the hangup has been sent to the provider. A panic in it, or in the
// call's methods, ends the session with the reason InternalError.
func (s *Session) Run(ctx context.Context, call Call) Ending {
	var requesting sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer requesting.Wait()
	defer cancel()
	if s.service.panics.Do(placeTick, func() { s.serveCall(ctx, call, &requesting) }) {
		s.endWithFallback(InternalError)
	}
	s.detachCall()
	cancel()
	s.service.panics.Do(placeTick, func() { s.releaseCall(call) })
	s.hangUpProvider()
	s.hangUpPlatform()
	return s.ending
}

// serveCall serves the call until the session ends.
func (s *Session) serveCall(ctx context.Context, call Call, requesting *sync.WaitGroup) {
	s.attachCall(call)
	if s.takesRequests() {
		requesting.Go(func() { s.RunRecovered(func() { s.runRequests(ctx, call) }) })
	}
	silence, stop := s.newSilenceTicker()
	defer stop()
	o := outage{retryLimit: s.service.settings.GiveUp}
	for {
		c, lost := s.currentConnection()
		select {
		case <-s.endSignal:
			return
		case <-ctx.Done():
			s.end(Ending{Reason: CallerHungUp, Cause: aiprotocol.NormalClearing})
		case <-silence:
			s.checkSilence()
		case <-lost:
			s.reconnect(ctx, c, &o)
		}
	}
}

// currentConnection returns the current connection and a channel that is closed when it is lost.
func (s *Session) currentConnection() (*providerConn, <-chan struct{}) {
	c := s.connection.Load()
	if c != nil {
		return c, c.lost
	}
	return nil, nil
}

func (s *Session) releaseCall(call Call) {
	if s.ending.Reason != Transferred {
		call.Release(s.ending)
	}
}

// attachCall makes the ticks serve the call. Audio received earlier is dropped.
func (s *Session) attachCall(call Call) {
	s.callerAudio.Reset()
	s.tickMu.Lock()
	s.call = call
	s.tickMu.Unlock()
	s.service.pacer.setCallAttached(s, true)
}

// detachCall stops the ticks from serving the call: they no longer call Play.
func (s *Session) detachCall() {
	s.service.pacer.setCallAttached(s, false)
	s.tickMu.Lock()
	defer s.tickMu.Unlock()
	s.call = nil
}

// Close ends a session that was opened but not run, because the call was not established.
func (s *Session) Close(cause string) {
	s.CallEnded(cause)
	s.hangUpProvider()
}

// hangUpProvider sends hangup, closes the connection, and waits until both are written.
func (s *Session) hangUpProvider() {
	c := s.connection.Load()
	if c != nil {
		c.send(&aiprotocol.Message{
			Event: aiprotocol.EventHangup, Hangup: aiprotocol.Hangup{Call: s.request.Call, Reason: s.ending.Cause},
		})
		s.recordSent(aiprotocol.EventHangup)
		c.queueClose()
		<-c.lost
	}
	s.service.completeSession(s)
}

// recordSent records a message to the provider if this is a test.
func (s *Session) recordSent(event aiprotocol.Event) {
	if s.probe != nil {
		s.probe.record(event, &s.probe.lastSent)
	}
}

// recordReceived records a message from the provider if this is a test.
func (s *Session) recordReceived(event aiprotocol.Event) {
	if s.probe != nil {
		s.probe.record(event, &s.probe.lastReceived)
	}
}

// newSilenceTicker returns a ticker's channel if there is a limit for the provider's silence.
func (s *Session) newSilenceTicker() (<-chan time.Time, func()) {
	limit := s.service.settings.SilenceTimeout
	if limit == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(max(limit/4, 10*time.Millisecond))
	return ticker.C, ticker.Stop
}

func (s *Session) checkSilence() {
	since := time.Since(time.Unix(0, s.lastAudioTime.Load()))
	if since > s.service.settings.SilenceTimeout && !s.playout.hasAudio() {
		s.endWithFallback(ProviderSilent)
	}
}
