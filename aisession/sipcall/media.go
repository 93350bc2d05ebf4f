package sipcall

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// media is the RTP media of a leg in both directions. Its codec never changes: a later offer without
// it is refused.
type media struct {
	port *rtp.Port
	// hosts returns the allowed RTP source addresses for an SDP address. It is nil if the PBX sets the
	// remote address.
	hosts      func(described netip.Addr) []netip.Addr
	local      *sip.Local
	codec      sip.Codec
	format     audio.Format
	session    *aisession.Session // set before the first packet
	negotiated atomic.Pointer[negotiated]
}

// negotiated is the result of the newest offer and answer.
type negotiated struct {
	stream       *rtp.Stream
	audio, event uint8 // payload types that the peer sends; event is 0 without telephone-event
	dtmf         *rtp.DTMFReceiver
}

// negotiate answers the offer of an INVITE.
func negotiate(port *rtp.Port, invite *sip.Invite, encoding string, encryption sip.Encryption) (*media, *sip.Session, error) {
	offer := invite.Offer()
	if offer == nil {
		return nil, nil, fault.New(fault.KindUnsupported, "an invitation without an offer")
	}
	encryption, err := encryption.Over(invite.Transport())
	if err != nil {
		return nil, nil, err
	}
	m := &media{port: port, hosts: invite.MediaHosts, local: sip.NewLocal(port.Addr(), sip.AllCodecs())}
	m.local.Encrypt(encryption)
	answer, agreed, err := m.local.Answer(offer, preferred(encoding)...)
	if err != nil {
		return nil, nil, err
	}
	m.codec = agreed.Formats[0].Codec
	m.format = formatOf(m.codec)
	return m, answer, m.apply(agreed)
}

// preferred returns the codecs for a provider's format, least lossy first. Nil keeps the order of the
// SDP offer.
func preferred(encoding string) []sip.Codec {
	switch encoding {
	case aiprotocol.ULaw:
		return []sip.Codec{sip.PCMU(), sip.PCMA()}
	case aiprotocol.Opus:
		return []sip.Codec{sip.Opus()}
	}
	return nil
}

func formatOf(c sip.Codec) audio.Format {
	switch {
	case c.Same(sip.PCMU()):
		return audio.Format{Encoding: audio.ULaw, Rate: 8000}
	case c.Same(sip.PCMA()):
		return audio.Format{Encoding: audio.ALaw, Rate: 8000}
	}
	return audio.Format{Encoding: audio.Opus, Rate: 48000}
}

// apply applies a negotiated session.
func (m *media) apply(agreed sip.Agreed) error {
	format := agreed.Formats[0]
	next := &negotiated{
		stream: rtp.NewStream(m.port, rtp.Format{
			PayloadType: format.Send, Clock: format.Clock, Frame: audio.FrameDuration, Events: agreed.Events.Send,
		}),
		audio: format.Receive, event: agreed.Events.Receive,
		dtmf: &rtp.DTMFReceiver{Clock: agreed.Events.Clock},
	}
	if before := m.negotiated.Load(); before != nil && before.dtmf.Clock == next.dtmf.Clock {
		next.dtmf = before.dtmf // keeps the record of reported digits
	}
	m.negotiated.Store(next)
	if m.hosts != nil {
		if err := m.port.Secure(agreed.Keys); err != nil {
			return err
		}
		m.port.SetRemote(agreed.Remote, m.hosts(agreed.Remote.Addr())...)
		m.port.Hold(!agreed.Receives)
	}
	return nil
}

// answerReinvite answers an offer that the peer makes during the call, such as a hold or another address.
func (m *media) answerReinvite(_ context.Context, offer *sip.Session) (*sip.Session, error) {
	answer, agreed, err := m.local.Answer(offer, m.codec)
	if err != nil {
		return nil, err
	}
	if !agreed.Formats[0].Same(m.codec) {
		return nil, fault.New(fault.KindUnsupported, "the call's codec cannot change")
	}
	return answer, m.apply(agreed)
}

// Receive implements rtp.Receiver.
func (m *media) Receive(packet *rtp.Packet) {
	now, agreed := time.Now(), m.negotiated.Load()
	var digit rtp.DTMF
	var ended bool
	switch {
	case packet.PayloadType == agreed.audio:
		m.session.ReceiveAudio(packet.Timestamp, packet.Payload)
		digit, ended = agreed.dtmf.Idle(now)
	case agreed.event != 0 && packet.PayloadType == agreed.event:
		digit, ended = agreed.dtmf.Event(packet, now)
	}
	if ended {
		m.session.ReceiveDTMF(digit.Digit, digit.Duration)
	}
}
