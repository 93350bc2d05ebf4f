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
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// media is the RTP media of a leg in both directions. Its codec never changes: a later offer without
// it is refused.
type media struct {
	port *rtp.Port
	// allowedHosts returns the allowed RTP source addresses for an SDP address. It is nil if the PBX sets the
	// remote address.
	allowedHosts func(described netip.Addr) []netip.Addr
	negotiator   *sip.Negotiator // nil if the PBX negotiates
	codec        sip.Codec
	format       audio.Format       // of codec
	session      *aisession.Session // set before the first packet
	parameters   atomic.Pointer[mediaParameters]
	agreedMedia  sip.NegotiatedMedia // of the newest offer and answer
	recording    localcall.Recording // nil where the PBX records
}

// mediaParameters is the result of the newest offer and answer.
type mediaParameters struct {
	stream               *rtp.Stream
	audioType, eventType uint8 // payload types that the peer sends; eventType is 0 without telephone-event
	dtmf                 *rtp.DTMFReceiver
}

// negotiate answers the offer of an INVITE.
func negotiate(port *rtp.Port, invite *sip.Invite, encoding string,
	encryption sip.Encryption) (*media, *sip.SDP, error) {
	offer := invite.Offer()
	if offer == nil {
		return nil, nil, fault.New(fault.KindUnsupported, "an invitation without an offer")
	}

	encryption, err := encryption.ForTransport(invite.Transport())
	if err != nil {
		return nil, nil, err
	}

	m := &media{port: port, allowedHosts: invite.MediaHosts,
		negotiator: sip.NewNegotiator(port.Addr(), sip.AllCodecs())}
	m.negotiator.SetEncryption(encryption)
	answer, agreed, err := m.negotiator.Answer(offer, preferredCodecs(encoding)...)
	if err != nil {
		return nil, nil, err
	}

	m.codec = agreed.Codecs[0].Codec
	m.format = localcall.FormatOf(m.codec)
	return m, answer, m.apply(agreed)
}

// preferredCodecs returns the codecs for a provider's format, least lossy first. Nil keeps the order of the
// SDP offer.
func preferredCodecs(encoding string) []sip.Codec {
	switch encoding {
	case aiprotocol.ULaw:
		return []sip.Codec{sip.PCMU(), sip.PCMA()}
	case aiprotocol.Opus:
		return []sip.Codec{sip.Opus()}
	}
	return nil
}

// apply applies what an offer and its answer agree on.
func (m *media) apply(agreed sip.NegotiatedMedia) error {
	format := agreed.Codecs[0]
	next := &mediaParameters{
		stream: rtp.NewStream(m.port, rtp.Format{
			PayloadType: format.SendType, Clock: format.Clock, Frame: audio.FrameDuration,
			TelephoneEventType: agreed.TelephoneEvent.SendType, TelephoneEventClock: agreed.TelephoneEvent.Clock,
		}),
		audioType: format.ReceiveType, eventType: agreed.TelephoneEvent.ReceiveType,
		dtmf: &rtp.DTMFReceiver{Clock: agreed.TelephoneEvent.Clock},
	}
	previous := m.parameters.Load()
	if previous != nil && previous.dtmf.Clock == next.dtmf.Clock {
		next.dtmf = previous.dtmf // keeps the record of reported digits
	}

	m.parameters.Store(next)
	m.agreedMedia = agreed
	if m.recording != nil {
		m.recording.SetMedia(agreed)
	}

	if m.allowedHosts != nil {
		if err := m.port.SetKeys(agreed.Keys); err != nil {
			return err
		}
		m.port.SetRemote(agreed.RemoteAddr, m.allowedHosts(agreed.RemoteAddr.Addr())...)
		m.port.SetHold(!agreed.PeerReceives)
	}

	return nil
}

// answerReinvite answers an offer that the peer makes during the call, such as a hold or another address.
func (m *media) answerReinvite(_ context.Context, offer *sip.SDP) (*sip.SDP, error) {
	answer, agreed, err := m.negotiator.Answer(offer, m.codec)
	if err != nil {
		return nil, err
	}
	if !agreed.Codecs[0].Same(m.codec) {
		return nil, fault.New(fault.KindUnsupported, "the call's codec cannot change")
	}
	return answer, m.apply(agreed)
}

// Receive implements rtp.Receiver.
func (m *media) Receive(packet *rtp.Packet) {
	now, parameters := time.Now(), m.parameters.Load()
	var digit rtp.DTMF
	var ended bool

	switch {
	case packet.PayloadType == parameters.audioType:
		m.session.ReceiveAudio(packet.Timestamp, packet.Payload)
		digit, ended = parameters.dtmf.CheckTimeout(now)
	case parameters.eventType != 0 && packet.PayloadType == parameters.eventType:
		digit, ended = parameters.dtmf.HandleEvent(packet, now)
	}

	if ended {
		m.session.ReceiveDTMF(digit.Digit, digit.Duration)
	}
}
