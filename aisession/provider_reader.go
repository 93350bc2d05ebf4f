package aisession

import (
	"errors"
	"time"

	"trunkline/internal/aiprotocol"
)

// reader handles the messages of one connection within the session's ticks.
type reader struct {
	session *Session
	link    *link
	now     time.Time // the tick's deadline
	decoder aiprotocol.Decoder
	flood   flood
}

func newReader(s *Session, l *link) *reader {
	return &reader{session: s, link: l, decoder: aiprotocol.Decoder{Extensions: s.request.Provider.Extensions}}
}

// binary counts a binary frame as malformed.
func (r *reader) binary() { r.countMalformed(problemBinary, 0) }

// ping queues the response to a ping.
func (r *reader) ping(data []byte) {
	r.flood.charge(1, r.now)
	r.link.pong(data)
}

// text handles a message. Its bytes are valid during the call.
func (r *reader) text(message []byte) {
	m, err := r.decoder.FromProvider(message)
	if err != nil {
		problem := aiprotocol.ProblemNotJSON
		if malformed, ok := errors.AsType[*aiprotocol.Error](err); ok {
			problem = malformed.Problem
		}
		r.countMalformed(string(problem), len(message))
		return
	}
	r.session.noteReceived(m.Event)
	if m.Event == aiprotocol.EventMedia {
		r.media(m.Audio)
		return
	}
	r.flood.charge(1, r.now) // extension messages count as useless, because a provider needs few
	r.session.handleExtension(r.link, m)
}

func (r *reader) media(piece []byte) {
	s, now := r.session, r.now
	if !s.first.Load() && s.first.CompareAndSwap(false, true) {
		s.service.metrics.firstAudio.Observe(now.Sub(r.link.born).Seconds())
	}
	s.soundAt.Store(now.UnixNano())
	if len(piece) == 0 {
		r.countMalformed(problemEmpty, 0)
		return
	}
	if len(piece) < tinyPiece {
		r.flood.charge(tinyCost, r.now)
	}
	if dropped := s.playout.put(piece, now); dropped > 0 {
		s.service.metrics.overruns.Add(dropped.Seconds())
		r.flood.charge(1, r.now)
	}
}

func (r *reader) countMalformed(problem string, size int) {
	r.session.service.metrics.malformed.WithLabelValues(problem).Inc()
	r.flood.charge(1+float64(size>>10), r.now)
}
