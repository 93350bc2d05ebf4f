package streamed

import (
	"context"
	"sync/atomic"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
)

// Opening is the session of a call whose connection is read before the session is open, so that a
// hang-up ends the opening. Audio received before is dropped.
type Opening struct {
	cancel  context.CancelFunc
	current atomic.Pointer[aisession.Session]
}

// NewOpening returns an Opening without a session. cancel ends the context of Service.Open.
func NewOpening(cancel context.CancelFunc) *Opening { return &Opening{cancel: cancel} }

// Opened sets the session. Then the caller must check the context of Service.Open: it has ended if the
// call was hung up before.
func (o *Opening) Opened(s *aisession.Session) { o.current.Store(s) }

// Session returns the session, nil before Opened.
func (o *Opening) Session() *aisession.Session { return o.current.Load() }

// HungUp ends the opening and the session because the call has ended.
func (o *Opening) HungUp() {
	o.cancel()
	if s := o.Session(); s != nil {
		s.HungUp(aiprotocol.NormalClearing)
	}
}

// ReceiveAudio implements Session.
func (o *Opening) ReceiveAudio(timestamp uint32, payload []byte) {
	if s := o.Session(); s != nil {
		s.ReceiveAudio(timestamp, payload)
	}
}

// Read calls next until it returns false, which means that the call has ended. protect recovers a panic
// before the session is open; a later one ends the session.
func (o *Opening) Read(protect func(func()), next func() bool) {
	defer o.HungUp()
	more := true
	protect(func() {
		for more && o.Session() == nil {
			more = next()
		}
	})
	if s := o.Session(); s != nil && more {
		s.Protect(func() {
			for next() {
			}
		})
	}
}
