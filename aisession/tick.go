package aisession

import (
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// loud is the level above which the caller counts as speaking, about -40 dB of full scale. It is used
// only to measure the provider's response time.
const loud audio.Level = 300

// Approximate cost of a session's ticks, in units of 0.25 % of a core.
const (
	usualCost = 1
	opusCost  = 8
)

func (s *Session) cost() int {
	if s.request.Format.Encoding == audio.Opus || s.request.Provider.Format.Encoding == aiprotocol.Opus {
		return opusCost
	}
	return usualCost
}

// tick moves one frame in each direction. Only ticks read and write the provider's socket. now is the
// tick's deadline and buffer the read buffer.
// A panic, of the audio library for example, ends the session and not the other sessions' ticks.
func (s *Session) tick(now time.Time, buffer []byte) {
	if s.service.panics.Do(placeTick, func() { s.tickOnce(now, buffer) }) {
		s.fallBack(InternalError)
	}
}

// Places of recovered panics.
const (
	placeTick    = "ai_session"
	placeIngress = "ai_ingress"
)

// Protect runs a part of the ingress that serves the session. A panic in it ends the session.
func (s *Session) Protect(f func()) {
	if s.service.panics.Do(placeIngress, f) {
		s.fallBack(InternalError)
	}
}

// Protect runs a part of an ingress that has no session yet. A panic in it is counted and logged.
func (s *Service) Protect(f func()) { s.panics.Do(placeIngress, f) }

func (s *Session) tickOnce(now time.Time, buffer []byte) {
	s.ticking.Lock()
	defer s.ticking.Unlock()
	l := s.link.Load()
	if l != nil {
		l.read(buffer, now)
	}
	if s.call != nil {
		s.tickToCall(now)
		s.tickToProvider(now)
	}
	if l != nil {
		l.write(now)
	}
}

func (s *Session) tickToProvider(now time.Time) {
	for want := s.toProvider.Wants(); want > 0; want = s.toProvider.Wants() {
		payload, missing := s.callerAudio.Next(s.scratch[:0], want)
		s.scratch = payload[:0]
		if missing > 0 {
			s.toProvider.Missing(missing)
		} else if s.toProvider.Push(payload) != nil {
			s.service.metrics.dropped.undecodable.Inc()
		}
	}
	frame, err := s.toProvider.Frame(s.frame[:0])
	s.frame = frame[:0]
	l := s.link.Load()
	switch {
	case err != nil:
		s.service.metrics.dropped.undecodable.Inc()
	case l != nil:
		if dropped := l.audio(frame); dropped > 0 {
			s.service.metrics.dropped.toProvider.Add(float64(dropped))
		}
		s.noteSent(aiprotocol.EventMedia)
	}
	if s.toProvider.Level() >= loud {
		s.spokeAt = now
	}
}

func (s *Session) tickToCall(now time.Time) {
	for want := s.toCall.Wants(); want > 0; want = s.toCall.Wants() {
		piece, turn := s.playout.take(s.scratch[:0], want, now)
		s.scratch = piece[:0]
		s.measure(turn, now)
		if len(piece) == 0 {
			s.toCall.Silence(want)
		} else if s.toCall.Push(piece) != nil {
			s.service.metrics.dropped.undecodable.Inc()
		}
	}
	frame, err := s.toCall.Frame(s.frame[:0])
	s.frame = frame[:0]
	if err != nil {
		s.service.metrics.dropped.undecodable.Inc()
		return
	}
	s.call.Play(frame)
	if s.request.Provider.Extensions {
		s.sendMarks()
	}
}

func (s *Session) measure(t turn, now time.Time) {
	switch {
	case t.began && t.again:
		s.service.metrics.underruns.Inc()
	case t.began && !s.spokeAt.IsZero():
		s.service.metrics.turnGap.Observe(now.Sub(s.spokeAt).Seconds())
		s.spokeAt = time.Time{}
	}
}

// sendMarks sends the marks that have been played.
func (s *Session) sendMarks() {
	for {
		mark, reached := s.playout.nextMark()
		if !reached {
			return
		}
		if l := s.link.Load(); l != nil {
			l.text(func(b []byte) []byte { return aiprotocol.AppendMark(b, mark) })
		}
	}
}
