package pbx

import (
	"slices"

	"trunkline/telephony/g711"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// side is one end of a call: its signalling and its media.
type side struct {
	port   *rtp.Port
	local  *sip.Local // nil until a phone has answered that was dialled for the side
	leg    *sip.Leg   // nil until it is answered
	agreed sip.Agreed
}

func (d *Driver) newSide() (*side, error) {
	port, err := d.ports.Open()
	if err != nil {
		return nil, err
	}
	return &side{port: port}, nil
}

// settle applies the result of an offer and its answer.
func (s *side) settle(agreed sip.Agreed) error {
	if err := s.port.Secure(agreed.Keys); err != nil {
		return err
	}
	s.agreed = agreed
	s.port.SetRemote(agreed.Remote, s.leg.MediaHosts(agreed.Remote.Addr())...)
	s.port.Hold(!agreed.Receives)
	return nil
}

func (s *side) codec() sip.Codec { return s.agreed.Formats[0].Codec }

// connectable reports whether media of two codecs can be relayed.
func connectable(a, b sip.Codec) bool { return a.Same(b) || a.IsG711() && b.IsG711() }

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

func codecsOf(formats []sip.Format) []sip.Codec {
	codecs := make([]sip.Codec, 0, len(formats))
	for _, f := range formats {
		codecs = append(codecs, f.Codec)
	}
	return codecs
}

// mapping returns the mapping of payload types from one side to the other.
func mapping(from, to *side) rtp.Mapping {
	first := to.agreed.Formats[0]
	m := rtp.Mapping{Clock: first.Clock}
	for _, f := range from.agreed.Formats {
		passed := false
		for _, t := range to.agreed.Formats {
			if passed = f.Same(t.Codec); passed {
				m.Pass(f.Receive, t.Send)
				break
			}
		}
		switch {
		case passed || !f.IsG711() || !first.IsG711():
		case f.Same(sip.PCMU()):
			m.Convert(f.Receive, first.Send, g711.ULawToALaw())
		default:
			m.Convert(f.Receive, first.Send, g711.ALawToULaw())
		}
	}
	if f, t := from.agreed.Events, to.agreed.Events; f.Name != "" && t.Name != "" && f.Clock == t.Clock {
		m.Pass(f.Receive, t.Send)
	}
	return m
}
