package sip

import (
	"slices"
	"strings"
)

// Codec is one format of an SDP media line.
type Codec struct {
	Name        string // as registered: PCMU, PCMA, opus, telephone-event
	PayloadType uint8
	Clock       uint32 // RTP clock in Hz
	Channels    int    // 1 when not said
	Parameters  string // fmtp
}

const (
	namePCMU   = "PCMU"
	namePCMA   = "PCMA"
	nameOpus   = "opus"
	nameEvents = "telephone-event"
)

// PCMU is G.711 µ-law.
func PCMU() Codec { return Codec{Name: namePCMU, PayloadType: 0, Clock: 8000, Channels: 1} }

// PCMA is G.711 A-law.
func PCMA() Codec { return Codec{Name: namePCMA, PayloadType: 8, Clock: 8000, Channels: 1} }

// Opus is RFC 7587: always announced as two channels of 48 kHz.
func Opus() Codec {
	return Codec{Name: nameOpus, PayloadType: 107, Clock: 48000, Channels: 2, Parameters: "useinbandfec=1"}
}

// Events is telephone-event (RFC 4733), the keys, at a codec's clock.
func Events(clock uint32) Codec {
	number := uint8(101)
	if clock != 8000 {
		number = 102
	}
	return Codec{Name: nameEvents, PayloadType: number, Clock: clock, Channels: 1, Parameters: "0-16"}
}

// AllCodecs is what Trunkline speaks, in its order of preference.
func AllCodecs() []Codec { return []Codec{PCMU(), PCMA(), Opus()} }

// Same says whether two formats are one codec, whatever their numbers.
func (c Codec) Same(other Codec) bool {
	return strings.EqualFold(c.Name, other.Name) && c.Clock == other.Clock && c.Channels == other.Channels
}

// IsEvents says whether c is telephone-event.
func (c Codec) IsEvents() bool { return strings.EqualFold(c.Name, nameEvents) }

// IsG711 says whether c is one of the two laws.
func (c Codec) IsG711() bool { return c.Same(PCMU()) || c.Same(PCMA()) }

func find(codecs []Codec, wanted Codec) (Codec, bool) {
	i := slices.IndexFunc(codecs, wanted.Same)
	if i < 0 {
		return Codec{}, false
	}
	return codecs[i], true
}
