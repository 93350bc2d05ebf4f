package aisession

import (
	"errors"
	"time"

	"trunkline/internal/aiprotocol"
)

// providerMessageHandler handles the messages of one connection within the session's ticks.
type providerMessageHandler struct {
	session  *Session
	conn     *providerConn
	now      time.Time // the tick's deadline
	throttle readThrottle
}

func newProviderMessageHandler(s *Session, c *providerConn) *providerMessageHandler {
	return &providerMessageHandler{session: s, conn: c}
}

// handleBinary handles a piece of audio. Where the protocol has audio in text frames it counts the frame as
// malformed.
func (r *providerMessageHandler) handleBinary(message []byte) {
	if !r.session.protocol.BinaryAudio {
		r.countMalformed(problemBinary, 0)
		return
	}
	r.session.recordReceived(aiprotocol.EventMedia)
	r.handleMedia(message)
}

// handlePing queues the response to a ping.
func (r *providerMessageHandler) handlePing(data []byte) {
	r.throttle.charge(1, r.now)
	r.conn.queuePong(data)
}

// handleText handles a message. Its bytes are valid during the call.
func (r *providerMessageHandler) handleText(message []byte) {
	m, err := r.conn.dialect.Decode(message)
	if err != nil {
		problem := aiprotocol.ProblemNotJSON
		if malformed, ok := errors.AsType[*aiprotocol.Error](err); ok {
			problem = malformed.Problem
		}
		r.countMalformed(string(problem), len(message))
		return
	}

	if m == nil {
		r.throttle.charge(ignoredCost, r.now)
		return
	}

	r.session.recordReceived(m.Event)
	if r.session.request.Listens {
		r.handleListener(m)
		return
	}
	if m.Event == aiprotocol.EventMedia {
		r.handleMedia(m.Audio)
		return
	}

	r.throttle.charge(1, r.now) // a provider needs few extension messages
	r.session.handleExtension(r.conn, m)
}

// handleListener handles a message of a provider that listens: everything but transcripts is ignored.
func (r *providerMessageHandler) handleListener(m *aiprotocol.Message) {
	if m.Event != aiprotocol.EventTranscript {
		r.countMalformed(string(aiprotocol.ProblemUnknown), 0)
		return
	}
	r.throttle.charge(1, r.now)
	r.session.reportTranscript(m.Transcript)
}

// handleMedia plays a piece of the provider's audio.
func (r *providerMessageHandler) handleMedia(piece []byte) {
	s, now := r.session, r.now
	if !s.firstAudioReceived.Load() && s.firstAudioReceived.CompareAndSwap(false, true) {
		s.service.metrics.firstAudio.Observe(now.Sub(r.conn.connectedAt).Seconds())
	}

	s.lastAudioTime.Store(now.UnixNano())
	if len(piece) == 0 {
		r.countMalformed(problemEmpty, 0)
		return
	}
	if len(piece) < minAudioBytes {
		r.throttle.charge(smallAudioCost, r.now)
	}

	dropped := s.playout.putAudio(piece, now)
	if dropped > 0 {
		s.service.metrics.overruns.Add(dropped.Seconds())
		r.throttle.charge(1, r.now)
	}
}

// countMalformed counts an ignored message, and charges the provider for its size in bytes.
func (r *providerMessageHandler) countMalformed(problem string, size int) {
	r.session.service.metrics.ignoredMessages.WithLabelValues(problem).Inc()
	r.throttle.charge(1+float64(size>>10), r.now)
}
