package aisession

import (
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// speechLevel is the level above which the caller counts as speaking, about -40 dB of full scale. It is used
// only to measure the provider's response time.
const speechLevel audio.Level = 300

// Approximate cost of a session's ticks, in units of 0.25 % of a core.
const (
	defaultCost = 1
	opusCost    = 8
)

// tickCost returns the cost of the session's ticks.
func (s *Session) tickCost() int {
	if s.request.Format.Encoding == audio.Opus || s.request.Provider.Format.Encoding == aiprotocol.Opus {
		return opusCost
	}
	return defaultCost
}

// tick moves one frame in each direction. Only ticks read and write the provider's socket. now is the
// tick's deadline and buffer the read buffer.
// A panic, of the audio library for example, ends the session and not the other sessions' ticks.
func (s *Session) tick(now time.Time, buffer []byte) {
	if s.service.panics.Do(placeTick, func() { s.tickOnce(now, buffer) }) {
		s.endWithFallback(InternalError)
	}
}

func (s *Session) tickOnce(now time.Time, buffer []byte) {
	s.tickMu.Lock()
	defer s.tickMu.Unlock()

	// In this order, what has arrived is played in this tick, and what it adds for the provider is written in it.
	c := s.connection.Load()
	if c != nil {
		c.read(buffer, now)
	}

	if s.call != nil {
		if !s.request.Listens {
			s.tickToCall(now)
		}
		for _, t := range s.tracks {
			s.tickToProvider(t, now)
		}
	}

	if c != nil {
		c.write(now)
	}
}

// tickToProvider sends the provider the next frame of one voice.
func (s *Session) tickToProvider(t *track, now time.Time) {
	for want := t.toProvider.SamplesNeeded(); want > 0; want = t.toProvider.SamplesNeeded() {
		payload, missing := t.jitter.Next(s.scratch[:0], want)
		s.scratch = payload[:0]
		if missing > 0 {
			t.toProvider.Conceal(missing)
		} else if t.toProvider.Decode(payload) != nil {
			s.service.metrics.dropped.undecodable.Inc()
		}
	}

	frame, err := t.toProvider.EncodeFrame(s.frame[:0])
	s.frame = frame[:0]
	c := s.connection.Load()

	switch {
	case err != nil:
		s.service.metrics.dropped.undecodable.Inc()
	case c != nil:
		dropped := c.queueAudio(frame, t.name)
		if dropped > 0 {
			s.service.metrics.dropped.toProvider.Add(float64(dropped))
		}
		s.recordSent(aiprotocol.EventMedia)
	}

	if t.toProvider.Level() >= speechLevel {
		s.lastSpeechTime = now
	}
}

// tickToCall plays the provider's next frame, or silence, to the caller.
func (s *Session) tickToCall(now time.Time) {
	for want := s.toCall.SamplesNeeded(); want > 0; want = s.toCall.SamplesNeeded() {
		piece, transitions := s.playout.takeAudio(s.scratch[:0], want, now)
		s.scratch = piece[:0]
		s.observeTransitions(transitions, now)

		if len(piece) == 0 {
			s.toCall.AddSilence(want)
		} else if s.toCall.Decode(piece) != nil {
			s.service.metrics.dropped.undecodable.Inc()
		}
	}

	frame, err := s.toCall.EncodeFrame(s.frame[:0])
	s.frame = frame[:0]
	if err != nil {
		s.service.metrics.dropped.undecodable.Inc()
		return
	}

	s.call.Play(frame)
	if s.takesRequests() {
		s.sendMarks()
	}
}

// observeTransitions counts gaps in the provider's audio, and measures how fast it answers.
func (s *Session) observeTransitions(t playoutTransitions, now time.Time) {
	switch {
	case t.started && t.afterGap:
		s.service.metrics.underruns.Inc()
	case t.started && !s.lastSpeechTime.IsZero():
		s.service.metrics.responseDelay.Observe(now.Sub(s.lastSpeechTime).Seconds())
		s.lastSpeechTime = time.Time{}
	}
}

// sendMarks sends the marks that have been played. Where the platform queues audio, they wait until it has played
// them. The caller holds tickMu.
func (s *Session) sendMarks() {
	queueing, queues := s.call.(QueueingCall)
	for {
		mark, request, reached := s.playout.nextMark()
		if !reached {
			return
		}

		report := func() { s.reportMark(mark, request) }
		if queues {
			queueing.AfterPlayed(report)
		} else {
			report()
		}
	}
}

// reportMark tells the provider of a mark, or carries out the request that waited for it.
func (s *Session) reportMark(mark aiprotocol.Mark, request *aiprotocol.Message) {
	c := s.connection.Load()
	switch {
	case request != nil:
		s.handleRequest(request)
	case c != nil:
		c.send(&aiprotocol.Message{Event: aiprotocol.EventMark, Mark: mark})
	}
}
