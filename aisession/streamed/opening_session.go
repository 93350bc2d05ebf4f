package streamed

import (
	"context"
	"sync/atomic"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
)

// OpeningSession is the session of a call whose connection is read before the session is open, so that a
// hang-up cancels Service.Open. Audio received before SetSession is dropped.
type OpeningSession struct {
	cancel  context.CancelFunc
	current atomic.Pointer[aisession.Session]
}

// NewOpeningSession returns an OpeningSession without a session. cancel ends the context of Service.Open.
func NewOpeningSession(cancel context.CancelFunc) *OpeningSession {
	return &OpeningSession{cancel: cancel}
}

// SetSession sets the session. Then the caller must check the context of Service.Open: it has ended if the
// call was hung up before.
func (p *OpeningSession) SetSession(s *aisession.Session) { p.current.Store(s) }

// Session returns the session, nil before SetSession.
func (p *OpeningSession) Session() *aisession.Session { return p.current.Load() }

// CallEnded cancels Service.Open and ends the session because the call has ended.
func (p *OpeningSession) CallEnded() {
	p.cancel()
	s := p.Session()
	if s != nil {
		s.CallEnded(aiprotocol.NormalClearing)
	}
}

// ReceiveAudio implements Session.
func (p *OpeningSession) ReceiveAudio(timestamp uint32, payload []byte) {
	s := p.Session()
	if s != nil {
		s.ReceiveAudio(timestamp, payload)
	}
}

// ReadMessages calls next until it returns false, which means that the call has ended. protect recovers a panic
// before the session is open; a later one ends the session.
func (p *OpeningSession) ReadMessages(protect func(func()), next func() bool) {
	defer p.CallEnded()

	connected := true
	protect(func() {
		for connected && p.Session() == nil {
			connected = next()
		}
	})

	s := p.Session()
	if s != nil && connected {
		s.RunRecovered(func() {
			for next() {
			}
		})
	}
}
