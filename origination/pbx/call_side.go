package pbx

import (
	"slices"

	"trunkline/telephony/g711"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// callSide is one end of a call: its signalling and its media.
type callSide struct {
	port        *rtp.Port
	negotiator  *sip.Negotiator // nil until a phone has answered that was dialled for the side
	leg         *sip.Leg        // nil until it is answered
	agreedMedia sip.NegotiatedMedia
}

func (d *Driver) newSide() (*callSide, error) {
	port, err := d.ports.Open()
	if err != nil {
		return nil, err
	}
	return &callSide{port: port}, nil
}

// apply applies the result of an offer and its answer.
func (s *callSide) apply(agreed sip.NegotiatedMedia) error {
	if err := s.port.SetKeys(agreed.Keys); err != nil {
		return err
	}
	s.agreedMedia = agreed
	s.port.SetRemote(agreed.RemoteAddr, s.leg.MediaHosts(agreed.RemoteAddr.Addr())...)
	s.port.SetHold(!agreed.PeerReceives)
	return nil
}

func (s *callSide) codec() sip.Codec { return s.agreedMedia.Codecs[0].Codec }

// canRelay reports whether media of two codecs can be relayed.
func canRelay(a, b sip.Codec) bool { return a.Same(b) || a.IsG711() && b.IsG711() }

// withOtherLaw adds the other law of G.711 if one is present, because the laws can be converted.
func withOtherLaw(codecs []sip.Codec) []sip.Codec {
	if !slices.ContainsFunc(codecs, sip.Codec.IsG711) {
		return codecs
	}

	all := slices.Clone(codecs)
	for _, law := range []sip.Codec{sip.PCMU(), sip.PCMA()} {
		if !slices.ContainsFunc(all, law.Same) {
			all = append(all, law)
		}
	}

	return all
}

func codecsOf(formats []sip.NegotiatedCodec) []sip.Codec {
	codecs := make([]sip.Codec, 0, len(formats))
	for _, f := range formats {
		codecs = append(codecs, f.Codec)
	}
	return codecs
}

// payloadMapping returns the mapping of payload types from one side to the other.
func payloadMapping(from, to *callSide) rtp.PayloadMapping {
	first := to.agreedMedia.Codecs[0]
	m := rtp.PayloadMapping{Clock: first.Clock}
	for _, f := range from.agreedMedia.Codecs {
		passed := false
		for _, t := range to.agreedMedia.Codecs {
			passed = f.Same(t.Codec)
			if passed {
				m.Pass(f.ReceiveType, t.SendType)
				break
			}
		}

		switch {
		case passed || !f.IsG711() || !first.IsG711():
		case f.Same(sip.PCMU()):
			m.Convert(f.ReceiveType, first.SendType, g711.ULawToALaw())
		default:
			m.Convert(f.ReceiveType, first.SendType, g711.ALawToULaw())
		}
	}

	f, t := from.agreedMedia.TelephoneEvent, to.agreedMedia.TelephoneEvent
	if f.Name != "" && t.Name != "" && f.Clock == t.Clock {
		m.Pass(f.ReceiveType, t.SendType)
	}

	return m
}
