package listening

import (
	"sync"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// maxListeners is the number of providers that may listen to a call at once.
const maxListeners = 4

// liveCall is a call in progress. It implements localcall.Recording.
type liveCall struct {
	localcall.RecordedCall
	listeners *Listeners

	mu         sync.Mutex
	media      sip.NegotiatedMedia
	begun      bool // connected, with media
	ended      bool
	listenerOf map[string]*listener // by provider
}

// Announcement implements localcall.Recording.
func (c *liveCall) Announcement() []int16 { return nil }

// Begin implements localcall.Recording.
func (c *liveCall) Begin(media sip.NegotiatedMedia) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.media, c.begun = media, true
}

// SetMedia implements localcall.Recording.
func (c *liveCall) SetMedia(media sip.NegotiatedMedia) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.media = media
	for _, l := range c.listenerOf {
		l.useMedia(media)
	}
}

// End implements localcall.Recording.
func (c *liveCall) End() {
	c.mu.Lock()
	c.ended = true
	for _, l := range c.listenerOf {
		if l.session != nil {
			l.session.CallEnded(aiprotocol.NormalClearing)
		}
	}
	c.mu.Unlock()
	c.listeners.calls.Remove(c)
}

// reservePlace takes a provider's place at the call, and returns the request of its session.
func (c *liveCall) reservePlace(p aiprovider.Provider, l *listener) (aisession.Request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	switch {
	case !c.begun || c.ended:
		return aisession.Request{}, fault.Conflict("the call is not connected")
	case c.listenerOf[p.ID] != nil:
		return aisession.Request{}, fault.Conflict("the provider hears the call already")
	case len(c.listenerOf) == maxListeners:
		return aisession.Request{}, fault.Conflict("%d providers hear the call already", maxListeners)
	}

	c.listenerOf[p.ID] = l
	return aisession.Request{
		Provider: p, Ingress: aisession.IngressListener, Listens: true,
		Call:   aiprotocol.Call{CallID: c.CallID},
		Caller: c.CallerNumber, Callee: c.CalleeNumber,
		Format: localcall.FormatOf(c.media.Codecs[0].Codec), RTPTimestamps: true,
		AccountID: c.AccountID, InteractionID: c.InteractionID, OriginationCallID: c.OriginationCallID,
	}, nil
}

// begin passes the call's packets to the session; false: the call has ended.
func (c *liveCall) begin(l *listener, session *aisession.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	// With the lock held: End then finds the session, or has ended the call before.
	l.session = session
	l.useMedia(c.media)
	c.Port.AddTap(l)
	return true
}

// freePlace frees a provider's place at the call.
func (c *liveCall) freePlace(providerID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listenerOf, providerID)
}
