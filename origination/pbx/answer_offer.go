package pbx

import (
	"context"

	"trunkline/internal/fault"
	"trunkline/telephony/sip"
)

// answerOffer answers an offer that a side's peer makes during the call. A hold is answered without
// notifying the other side, and nothing is sent to the holding side. Another codec is accepted if
// media can still be relayed, or the other side changes to it too.
func (b *bridge) answerOffer(ctx context.Context, s *callSide, offer *sip.SDP) (*sip.SDP, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	other := b.otherSide(s)
	if s.leg == nil || other != nil && other.leg == nil {
		return nil, fault.Conflict("the call is not connected yet")
	}

	answer, agreed, err := s.negotiator.Answer(offer, b.preferredCodecs(s)...)
	if err != nil {
		return nil, err
	}

	chosen := agreed.Codecs[0].Codec
	switch {
	case b.fixedCodec && !chosen.Same(s.codec()):
		return nil, fault.New(fault.KindUnsupported, "the codec cannot be changed during an AI session")
	case other != nil && !canRelay(chosen, other.codec()):
		if err := reinvite(ctx, other, chosen); err != nil {
			return nil, err
		}
	}

	// After the other side: where it refuses, the media of both stays as it is.
	if err := s.apply(agreed); err != nil {
		return nil, err
	}

	b.tellRecording(b.near.agreedMedia)
	switch {
	case b.far != nil:
		b.startRelay()
	case b.stopRingTone != nil:
		b.stopToneLocked()
		b.startToneLocked()
	}

	return answer, nil
}

// preferredCodecs returns the codecs in order of preference: the codec in use, then those that the other side
// can use without a re-INVITE.
func (b *bridge) preferredCodecs(s *callSide) []sip.Codec {
	prefer := []sip.Codec{s.codec()}
	other := b.otherSide(s)
	if other != nil {
		prefer = append(prefer, withOtherLaw(codecsOf(other.agreedMedia.Codecs[:1]))...)
	}
	return prefer
}

func (b *bridge) otherSide(s *callSide) *callSide {
	if s == b.near {
		return b.far
	}
	return b.near
}
