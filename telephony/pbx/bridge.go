package pbx

import (
	"context"
	"sync"
	"time"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// bridge is the media of one call, and the offers that change it. a is the
// owner's or caller's side.
type bridge struct {
	tones *tones

	mu    sync.Mutex
	a, b  *side  // b is nil until it has answered
	local bool   // a talks to a localcall.Destination: its codec stays
	quiet func() // stops the ring tone
}

// answered gives a side its leg.
func (b *bridge) answered(s *side, leg *sip.Leg, agreed sip.Agreed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.leg = leg
	s.settle(agreed)
}

// settled is what a's side has agreed on.
func (b *bridge) settled() sip.Agreed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.a.agreed
}

func (b *bridge) formats() []sip.Format { return b.settled().Formats }

// ring lets a hear that the destination rings.
func (b *bridge) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.startTone()
}

func (b *bridge) startTone() {
	format := b.a.agreed.Formats[0]
	stream := rtp.NewStream(b.a.port, rtp.Format{PayloadType: format.Send, Clock: format.Clock, Frame: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		stream.Run(ctx, b.tones.source(format.Codec))
	}()
	b.quiet = func() {
		cancel()
		<-done
	}
}

func (b *bridge) stopTone() {
	if b.quiet != nil {
		b.quiet()
		b.quiet = nil
	}
}

// silence ends the ring tone; local says that the codec must stay from now on.
func (b *bridge) silence(local bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopTone()
	b.local = local
}

// join lets the two hear each other. When the owner accepted several codecs
// and the destination chose another than the owner's first, the owner is asked
// to change.
func (b *bridge) join(ctx context.Context, other *side) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !connectable(b.a.codec(), other.codec()) {
		if err := change(ctx, b.a, other.codec()); err != nil {
			return err
		}
	}
	b.stopTone()
	b.b = other
	b.relay()
	return nil
}

func (b *bridge) relay() {
	rtp.NewRelay(b.a.port, b.b.port, mapping(b.a, b.b), mapping(b.b, b.a))
}

// change asks a side to use a codec.
func change(ctx context.Context, s *side, codec sip.Codec) error {
	offer := s.local.Offer(codec)
	answer, err := s.leg.Reinvite(ctx, offer)
	if err != nil {
		return err
	}
	agreed, err := s.local.Accept(offer, answer)
	if err != nil {
		return err
	}
	s.settle(agreed)
	return nil
}
