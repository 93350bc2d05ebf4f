package localcall

import (
	"trunkline/telephony/audio"
	"trunkline/telephony/sip"
)

// The voices of a call, as indexes: its caller's, whose packets RecordedCall.Port receives, and its callee's, which are
// sent to it.
const (
	Caller = iota
	Callee
	Voices // their number
)

// Payload is what the packets of one payload type contain.
type Payload struct {
	Format audio.Format // zero: no audio
	Keys   bool         // key presses
}

// Payloads has what the packets of each voice contain, by payload type.
type Payloads [Voices][128]Payload

// PayloadsOf returns the payloads of a call whose caller's side has the media.
func PayloadsOf(media sip.NegotiatedMedia) (p Payloads) {
	for _, codec := range media.Codecs {
		payload := Payload{Format: FormatOf(codec.Codec)}
		p[Caller][codec.ReceiveType&0x7F], p[Callee][codec.SendType&0x7F] = payload, payload
	}
	keys := media.TelephoneEvent
	if keys.Name != "" {
		p[Caller][keys.ReceiveType&0x7F], p[Callee][keys.SendType&0x7F] = Payload{Keys: true}, Payload{Keys: true}
	}
	return p
}

// FormatOf returns the format of a codec's audio, the zero value for a codec that is none of sip.AllCodecs.
func FormatOf(c sip.Codec) audio.Format {
	switch {
	case c.Same(sip.PCMU()):
		return audio.Format{Encoding: audio.ULaw, Rate: 8000}
	case c.Same(sip.PCMA()):
		return audio.Format{Encoding: audio.ALaw, Rate: 8000}
	case c.Same(sip.Opus()):
		return audio.Format{Encoding: audio.Opus, Rate: 48000}
	}
	return audio.Format{}
}
