package streamed

import (
	"context"
	"sync/atomic"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
)

// CallSession is the session of a call whose connection is read before the session is open, so that a
// hang-up cancels Service.Open. Audio received before SetSession is dropped.
type CallSession struct {
	cancel  context.CancelFunc                // ends the context of Service.Open
	current atomic.Pointer[aisession.Session] // nil before SetSession
}

// NewCallSession returns a CallSession without a session. cancel ends the context of Service.Open.
func NewCallSession(cancel context.CancelFunc) *CallSession {
	return &CallSession{cancel: cancel}
}

// SetSession sets the session. Then the caller must check the context of Service.Open: it has ended if the
// call was hung up before.
func (c *CallSession) SetSession(s *aisession.Session) { c.current.Store(s) }

// Session returns the session, nil before SetSession.
func (c *CallSession) Session() *aisession.Session { return c.current.Load() }

// CallEnded cancels Service.Open and ends the session because the call has ended.
func (c *CallSession) CallEnded() {
	c.cancel()
	s := c.Session()
	if s != nil {
		s.CallEnded(aiprotocol.NormalClearing)
	}
}

// ReceiveAudio implements Session.
func (c *CallSession) ReceiveAudio(timestamp uint32, payload []byte) {
	s := c.Session()
	if s != nil {
		s.ReceiveAudio(timestamp, payload)
	}
}

// ReadMessages calls next until it returns false, which means that the call has ended. protect recovers a panic
// before the session is open; a later one ends the session.
func (c *CallSession) ReadMessages(protect func(func()), next func() bool) {
	defer c.CallEnded()

	connected := true
	protect(func() {
		for connected && c.Session() == nil {
			connected = next()
		}
	})

	s := c.Session()
	if s != nil && connected {
		s.RunRecovered(func() {
			for next() {
			}
		})
	}
}
