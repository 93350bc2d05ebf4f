package pbx

import (
	"context"
	"sync"
	"time"

	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// bridge is the media of one call and the offers that change it. near is the owner's or caller's side.
type bridge struct {
	tones *tones
	call  *call

	mu           sync.Mutex
	near, far    *callSide           // far is nil until it has answered
	fixedCodec   bool                // near is connected to a localcall.Destination: its codec is fixed
	stopRingTone func()              // nil without a ring tone
	recording    localcall.Recording // nil before the sides are connected
}

// setLeg sets a side's leg.
func (b *bridge) setLeg(s *callSide, negotiator *sip.Negotiator, leg *sip.Leg, agreed sip.NegotiatedMedia) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.negotiator, s.leg = negotiator, leg
	b.call.addLeg(leg)
	return s.apply(agreed)
}

// nearAgreed returns the negotiated media of the near side.
func (b *bridge) nearAgreed() sip.NegotiatedMedia {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.near.agreedMedia
}

func (b *bridge) nearCodecs() []sip.NegotiatedCodec { return b.nearAgreed().Codecs }

// startRingTone plays the ring tone to the near side.
func (b *bridge) startRingTone() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.startToneLocked()
}

func (b *bridge) startToneLocked() {
	format := b.near.agreedMedia.Codecs[0]
	stream := rtp.NewStream(b.near.port,
		rtp.Format{PayloadType: format.SendType, Clock: format.Clock, Frame: 20 * time.Millisecond})

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

func (b *bridge) stopToneLocked() {
	if b.stopRingTone != nil {
		b.stopRingTone()
		b.stopRingTone = nil
	}
}

// endRingTone ends the ring tone. If local, the codec of the near side is fixed from now on.
func (b *bridge) endRingTone(fixCodec bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopToneLocked()
	b.fixedCodec = fixCodec
}

// connect relays media between the two sides. If the owner accepted several codecs and the destination
// chose another than the owner's first, the owner is re-invited with that codec.
func (b *bridge) connect(ctx context.Context, other *callSide) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if !canRelay(b.near.codec(), other.codec()) {
		if err := reinvite(ctx, b.near, other.codec()); err != nil {
			return err
		}
	}

	b.stopToneLocked()
	b.far = other
	b.startRelay()

	return nil
}

func (b *bridge) startRelay() {
	rtp.Relay(b.near.port, b.far.port, payloadMapping(b.near, b.far), payloadMapping(b.far, b.near))
}

// reinvite re-invites a side with a codec.
func reinvite(ctx context.Context, s *callSide, codec sip.Codec) error {
	offer := s.negotiator.Offer(codec)
	answer, err := s.leg.Reinvite(ctx, offer)
	if err != nil {
		return err
	}

	agreed, err := s.negotiator.AcceptAnswer(offer, answer)
	if err != nil {
		return err
	}

	return s.apply(agreed)
}
