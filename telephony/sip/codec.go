package sip

import (
	"slices"
	"strings"
)

// Codec is one format of an SDP media line.
type Codec struct {
	Name        string // encoding name: PCMU, PCMA, opus, telephone-event
	PayloadType uint8
	Clock       uint32 // RTP clock in Hz
	Channels    int    // 1 if absent
	Parameters  string // value of a=fmtp
}

const (
	namePCMU   = "PCMU"
	namePCMA   = "PCMA"
	nameOpus   = "opus"
	nameEvents = "telephone-event"
)

// PCMU returns G.711 µ-law.
func PCMU() Codec { return Codec{Name: namePCMU, PayloadType: 0, Clock: 8000, Channels: 1} }

// PCMA returns G.711 A-law.
func PCMA() Codec { return Codec{Name: namePCMA, PayloadType: 8, Clock: 8000, Channels: 1} }

// Opus returns opus. Its SDP always has a clock of 48 kHz and two channels (RFC 7587).
func Opus() Codec {
	return Codec{Name: nameOpus, PayloadType: 107, Clock: 48000, Channels: 2, Parameters: "useinbandfec=1"}
}

// TelephoneEvent returns telephone-event (RFC 4733) with a codec's clock in Hz.
func TelephoneEvent(clock uint32) Codec {
	number := uint8(101)
	if clock != 8000 {
		number = 102
	}
	return Codec{Name: nameEvents, PayloadType: number, Clock: clock, Channels: 1, Parameters: "0-16"}
}

// AllCodecs returns the supported codecs in order of preference.
func AllCodecs() []Codec { return []Codec{PCMU(), PCMA(), Opus()} }

// Same reports whether two formats are the same codec, regardless of their payload types.
func (c Codec) Same(other Codec) bool {
	return strings.EqualFold(c.Name, other.Name) && c.Clock == other.Clock && c.Channels == other.Channels
}

// IsTelephoneEvent reports whether c is telephone-event.
func (c Codec) IsTelephoneEvent() bool { return strings.EqualFold(c.Name, nameEvents) }

// IsG711 reports whether c is PCMU or PCMA.
func (c Codec) IsG711() bool { return c.Same(PCMU()) || c.Same(PCMA()) }

// findCodec returns the first of the codecs that is the same as wanted.
func findCodec(codecs []Codec, wanted Codec) (Codec, bool) {
	i := slices.IndexFunc(codecs, wanted.Same)
	if i < 0 {
		return Codec{}, false
	}
	return codecs[i], true
}
