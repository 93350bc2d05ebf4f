package sip

import (
	"context"
	"net/netip"
	"sync"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// OfferFunc answers an offer that the peer makes during the call: a hold,
// another codec, another address. An error refuses it (488), and all stays as
// it was. It is called on a goroutine of its own, never twice at once for one
// leg, and may call Reinvite on other legs. ctx ends when the leg does.
type OfferFunc func(ctx context.Context, offer *Session) (*Session, error)

// Leg is one answered call between us and a peer. Its methods may be called
// from any goroutine, and none but Reinvite blocks.
type Leg struct {
	server  *Server
	id      string
	local   sipmsg.FromHeader // our address and tag
	remote  sipmsg.ToHeader   // the peer's
	contact sipmsg.ContactHeader
	called  bool // by us: the Call-ID is ours
	routes  []string
	network string // UDP or TCP
	// destination is where requests go for a peer behind NAT; "" where its
	// contact says.
	destination        string
	peer               netip.AddrPort
	onOffer            OfferFunc
	username, password string

	ctx       context.Context // ends with the leg
	end       context.CancelFunc
	endSignal chan struct{}

	mu          sync.Mutex
	endCause    Cause
	ended       bool
	target      sipmsg.Uri // the peer's contact
	sequence    uint32     // of our last request
	theirs      uint32     // of the peer's last request
	ours, peers *Session   // the descriptions in force
	offering    bool       // our offer has no answer yet
	answering   bool       // theirs has none
	unacked     *unacked   // our 2xx that the peer has not acknowledged
	canUpdate   bool       // the peer knows UPDATE
	timer       *time.Timer
	interval    time.Duration // of the session timer; 0: none
	refreshes   bool          // we refresh
	referring   chan int      // statuses of our REFER; nil: there is none
}

// CallID is the leg's Call-ID.
func (l *Leg) CallID() string { return l.id }

// Session is the peer's description in force.
func (l *Leg) Session() *Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers
}

// Source is where the peer's signalling comes from. Behind NAT its media
// comes from the same host.
func (l *Leg) Source() netip.AddrPort { return l.peer }

// Done is closed when the leg has ended.
func (l *Leg) Done() <-chan struct{} { return l.endSignal }

// Cause is why the leg ended; "" while it has not.
func (l *Leg) Cause() Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endCause
}

// Hangup ends the leg, if it has not ended: it is done at once, with the cause,
// and a BYE that carries the cause follows in the background.
func (l *Leg) Hangup(cause Cause) {
	tasks := l.server.background
	counted := tasks.begin() // first, so that the end of the server waits for what follows
	switch first := l.finish(cause); {
	case first && counted:
		go func() {
			defer tasks.finish()
			defer l.forget()
			l.awaitAck()
			l.bye(cause)
		}()
	case first:
		l.forget()
	case counted:
		tasks.finish()
	}
}

// finish ends the leg for us. Only the first call does.
func (l *Leg) finish(cause Cause) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.ended, l.endCause = true, cause
	if l.timer != nil {
		l.timer.Stop()
	}
	l.end()
	close(l.endSignal)
	return true
}

// forget gives the leg's place up: its dialog is over.
func (l *Leg) forget() {
	s := l.server
	s.mu.Lock()
	delete(s.dialogs, l.key())
	s.mu.Unlock()
	s.release()
}

func (l *Leg) key() string {
	return dialogKey(l.id, l.local.Params.GetOr("tag", ""), l.remote.Params.GetOr("tag", ""))
}

func dialogKey(callID, localTag, remoteTag string) string {
	return callID + "\x00" + localTag + "\x00" + remoteTag
}
