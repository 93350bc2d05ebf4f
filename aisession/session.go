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
	"trunkline/internal/fault"
	"trunkline/internal/tracing"
	"trunkline/telephony/audio"
)

// Session carries one call's audio to and from one provider, over one connection at a time. The call's
// ingress uses ReceiveAudio, ReceiveDTMF and CallEnded; they never block and may be called from any
// goroutine, also after the session has ended.
type Session struct {
	service   *Service
	sessionID string
	publisher int // of its events: index in Service.events
	request   Request
	protocol  dialect.Protocol
	log       *slog.Logger
	openedAt  time.Time
	span      tracing.Span    // span of the session's life
	trace     tracing.Carrier // identifies span, for what other goroutines do for the session

	tracks   []*track // the caller's; also the callee's where the provider listens
	playout  *playout // the provider's audio
	toCall   *audio.Transcoder
	schedule wheelSlot // used by the tickScheduler

	connection atomic.Pointer[providerConn] // nil while there is no connection

	endOnce            sync.Once
	endSignal          chan struct{} // closed after ending is set
	ending             Ending
	testCall           *testCall            // set for a test, which records every message and connects once
	requests           chan providerRequest // of the provider, for runRequests
	firstAudioReceived atomic.Bool          // the provider's first audio has arrived
	lastAudioTime      atomic.Int64         // Unix nanoseconds of the provider's last audio, or of the start message

	tickMu         sync.Mutex // guards the following fields, tracks and the transcoders
	call           Call       // nil before and after Run
	scratch        []byte     // buffer of a packet
	frame          []byte     // buffer of an outgoing frame
	lastSpeechTime time.Time  // when the caller last spoke
}

// track is one voice on its way to the provider.
type track struct {
	name       aiprotocol.Track
	jitter     *audio.JitterBuffer
	format     audio.Format // of the call
	toProvider *audio.Transcoder
}

// newTrack returns a track of a request. The error is fault.KindUnsupported.
func newTrack(name aiprotocol.Track, format audio.Format, r *Request) (*track, error) {
	toProvider, err := audio.NewTranscoder(format, providerFormat(r))
	if err != nil {
		return nil, fault.New(fault.KindUnsupported, "the call's audio format is not supported")
	}
	newBuffer := audio.NewJitterBuffer
	if r.Listens { // nobody waits for an answer
		newBuffer = audio.NewPatientJitterBuffer
	}

	return &track{name: name, jitter: newBuffer(format, r.RTPTimestamps), format: format, toProvider: toProvider}, nil
}

// providerFormat returns the audio format of a request's provider.
func providerFormat(r *Request) audio.Format {
	return audio.Format{Encoding: audio.Encoding(r.Provider.Format.Encoding), Rate: r.Provider.Format.SampleRate}
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
	return dialect.Config{Secret: p.Secret, Session: p.Session, Extensions: p.Extensions, Listens: s.request.Listens,
		Format: p.Format}
}

// takesRequests reports whether the provider may send more than audio.
func (s *Session) takesRequests() bool {
	return !s.request.Listens && (s.protocol.RequestsWithoutOptIn || s.request.Provider.Extensions)
}

// ReceiveAudio adds a packet of the caller's audio, in the call's format. It copies payload.
func (s *Session) ReceiveAudio(timestamp uint32, payload []byte) {
	caller := s.tracks[0].jitter
	missed := caller.Put(timestamp, payload)
	if s.service.scheduler.packetArrived(s, time.Now(), missed) {
		caller.Skip() // later ticks wait for such packets
	}
}

// ReceiveVoice adds a packet of one voice of a call that the provider listens to, as ReceiveAudio does. The format
// of a voice may change during the call.
func (s *Session) ReceiveVoice(voice int, format audio.Format, timestamp uint32, payload []byte) {
	if !s.setVoiceFormat(voice, format) {
		s.service.metrics.dropped.undecodable.Inc()
		return
	}
	if voice == 0 {
		s.ReceiveAudio(timestamp, payload)
		return
	}
	s.tracks[voice].jitter.Put(timestamp, payload)
}

// setVoiceFormat sets the format of a voice from its next packet on, and reports whether it is supported. Packets
// of one voice arrive one at a time.
func (s *Session) setVoiceFormat(voice int, format audio.Format) bool {
	if s.tracks[voice].format == format {
		return true
	}

	next, err := newTrack(s.tracks[voice].name, format, &s.request)
	if err != nil {
		return false
	}

	s.tickMu.Lock()
	defer s.tickMu.Unlock()

	s.tracks[voice] = next
	return true
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

	// In this order: Play must not be called once the call is released, and cancel ends a request in progress.
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
		return c, c.done
	}
	return nil, nil
}

// releaseCall releases a call that was not transferred.
func (s *Session) releaseCall(call Call) {
	if s.ending.Reason != Transferred {
		call.Release(s.ending)
	}
}

// attachCall makes the ticks serve the call. Audio received earlier is dropped.
func (s *Session) attachCall(call Call) {
	s.tickMu.Lock()
	for _, t := range s.tracks {
		t.jitter.Reset()
	}
	s.call = call
	s.tickMu.Unlock()
	s.service.scheduler.setCallAttached(s, true)
}

// detachCall stops the ticks from serving the call: they no longer call Play.
func (s *Session) detachCall() {
	s.service.scheduler.setCallAttached(s, false)
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
		// The ticks write both, and give up a provider that does not answer (closeTimeout) or read (writeTimeout).
		<-c.done
	}

	s.service.completeSession(s)
}

// recordSent records a message to the provider if this is a test.
func (s *Session) recordSent(event aiprotocol.Event) {
	if s.testCall != nil {
		s.testCall.record(event, &s.testCall.lastSent)
	}
}

// recordReceived records a message from the provider if this is a test.
func (s *Session) recordReceived(event aiprotocol.Event) {
	if s.testCall != nil {
		s.testCall.record(event, &s.testCall.lastReceived)
	}
}

// newSilenceTicker returns a ticker's channel if there is a limit for the provider's silence.
func (s *Session) newSilenceTicker() (<-chan time.Time, func()) {
	limit := s.service.settings.SilenceTimeout
	if limit == 0 || s.request.Listens {
		return nil, func() {}
	}
	// A check sees the end of the limit at most a quarter of it late.
	ticker := time.NewTicker(max(limit/4, 10*time.Millisecond))
	return ticker.C, ticker.Stop
}

// checkSilence ends the session if the provider has sent no audio for too long and none is left to play.
func (s *Session) checkSilence() {
	since := time.Since(time.Unix(0, s.lastAudioTime.Load()))
	if since > s.service.settings.SilenceTimeout && !s.playout.hasAudio() {
		s.endWithFallback(ProviderSilent)
	}
}
