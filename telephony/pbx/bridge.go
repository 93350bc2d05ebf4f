package pbx

import (
	"context"
	"sync"
	"time"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// bridge is the media of one call and the offers that change it. a is the owner's or caller's side.
type bridge struct {
	tones *tones
	call  *call

	mu           sync.Mutex
	a, b         *side  // b is nil until it has answered
	fixedCodec   bool   // a is connected to a localcall.Destination: its codec is fixed
	stopRingTone func() // stops the ring tone
}

// answered sets a side's leg.
func (b *bridge) answered(s *side, local *sip.Local, leg *sip.Leg, agreed sip.Agreed) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.local, s.leg = local, leg
	b.call.add(leg)
	return s.settle(agreed)
}

// agreedOfA returns what side a has agreed on.
func (b *bridge) agreedOfA() sip.Agreed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.a.agreed
}

func (b *bridge) formats() []sip.Format { return b.agreedOfA().Formats }

// startRingTone plays the ring tone to side a.
func (b *bridge) startRingTone() {
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
	b.stopRingTone = func() {
		cancel()
		<-done
	}
}

func (b *bridge) stopTone() {
	if b.stopRingTone != nil {
		b.stopRingTone()
		b.stopRingTone = nil
	}
}

// endRingTone ends the ring tone. If local, the codec of side a is fixed from now on.
func (b *bridge) endRingTone(local bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopTone()
	b.fixedCodec = local
}

// join relays media between the two sides. If the owner accepted several codecs and the destination
// chose another than the owner's first, the owner is re-invited with that codec.
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
	rtp.Relay(b.a.port, b.b.port, mapping(b.a, b.b), mapping(b.b, b.a))
}

// change re-invites a side with a codec.
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
	return s.settle(agreed)
}
