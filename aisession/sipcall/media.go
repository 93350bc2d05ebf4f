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
	// hosts returns the hosts of the peer's media. It is nil if the port's owner sets its peer.
	hosts   func(described netip.Addr) []netip.Addr
	local   *sip.Local
	codec   sip.Codec
	format  audio.Format
	session *aisession.Session // set before the first packet
	agreed  atomic.Pointer[agreement]
}

// agreement is the result of the newest offer and answer.
type agreement struct {
	stream       *rtp.Stream
	audio, event uint8 // payload types that the peer sends; event is 0 without telephone-event
	keypad       *rtp.Keypad
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
	return m, answer, m.settle(agreed)
}

// preferred returns the codecs in order of the loss in conversion to a provider's format. For pcm16 it
// returns nil: the caller's order applies.
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

// settle applies a negotiated session.
func (m *media) settle(agreed sip.Agreed) error {
	format := agreed.Formats[0]
	next := &agreement{
		stream: rtp.NewStream(m.port, rtp.Format{
			PayloadType: format.Send, Clock: format.Clock, Frame: audio.FrameDuration, Events: agreed.Events.Send,
		}),
		audio: format.Receive, event: agreed.Events.Receive,
		keypad: &rtp.Keypad{Clock: agreed.Events.Clock},
	}
	if before := m.agreed.Load(); before != nil && before.keypad.Clock == next.keypad.Clock {
		next.keypad = before.keypad // keeps the record of reported presses
	}
	m.agreed.Store(next)
	if m.hosts != nil {
		if err := m.port.Secure(agreed.Keys); err != nil {
			return err
		}
		m.port.SetRemote(agreed.Remote, m.hosts(agreed.Remote.Addr())...)
		m.port.Hold(!agreed.Receives)
	}
	return nil
}

// reoffered answers an offer that the peer makes during the call, such as a hold or another address.
func (m *media) reoffered(_ context.Context, offer *sip.Session) (*sip.Session, error) {
	answer, agreed, err := m.local.Answer(offer, m.codec)
	if err != nil {
		return nil, err
	}
	if !agreed.Formats[0].Same(m.codec) {
		return nil, fault.New(fault.KindUnsupported, "the call's codec cannot change")
	}
	return answer, m.settle(agreed)
}

// Receive implements rtp.Receiver.
func (m *media) Receive(packet *rtp.Packet) {
	now, agreed := time.Now(), m.agreed.Load()
	var press rtp.Press
	var ended bool
	switch {
	case packet.PayloadType == agreed.audio:
		m.session.ReceiveAudio(packet.Timestamp, packet.Payload)
		press, ended = agreed.keypad.Idle(now)
	case agreed.event != 0 && packet.PayloadType == agreed.event:
		press, ended = agreed.keypad.Event(packet, now)
	}
	if ended {
		m.session.Pressed(press.Digit, press.Duration)
	}
}
