package listening

import (
	"context"
	"sync/atomic"
	"time"

	"trunkline/aisession"
	"trunkline/internal/fault"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// listener is a provider that listens to a call. It implements rtp.Tap, and aisession.Call for a session that
// only listens.
type listener struct {
	session  *aisession.Session                 // nil while it is opened
	payloads atomic.Pointer[localcall.Payloads] // of the call's media; set by useMedia
}

// useMedia sets the media of the call, by which packets are read.
func (l *listener) useMedia(media sip.NegotiatedMedia) {
	payloads := localcall.PayloadsOf(media)
	l.payloads.Store(&payloads)
}

// Received implements rtp.Tap.
func (l *listener) Received(packet *rtp.Packet) { l.receive(localcall.Caller, packet) }

// Sent implements rtp.Tap.
func (l *listener) Sent(packet *rtp.Packet) { l.receive(localcall.Callee, packet) }

func (l *listener) receive(voice int, packet *rtp.Packet) {
	format := l.payloads.Load()[voice][packet.PayloadType&0x7F].Format
	if format.Encoding != "" {
		l.session.ReceiveVoice(voice, format, packet.Timestamp, packet.Payload)
	}
}

// Play implements aisession.Call. It is never called.
func (*listener) Play([]byte) {}

// SendDTMF implements aisession.Call and refuses.
func (*listener) SendDTMF(context.Context, byte, time.Duration) error { return errListens() }

// Transfer implements aisession.Call and refuses.
func (*listener) Transfer(context.Context, string) error { return errListens() }

func errListens() error { return fault.New(fault.KindUnsupported, "the provider only listens") }

// Release implements aisession.Call. The call of others goes on.
func (*listener) Release(aisession.Ending) {}
