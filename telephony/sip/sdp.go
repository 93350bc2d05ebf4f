package sip

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pion/sdp/v3"

	"trunkline/internal/fault"
	"trunkline/telephony/srtp"
)

// Direction is the direction of media from the describing side (RFC 3264).
type Direction string

// The directions.
const (
	SendRecv Direction = "sendrecv"
	SendOnly Direction = "sendonly"
	RecvOnly Direction = "recvonly"
	Inactive Direction = "inactive"
)

// Sends reports whether the describing side will send.
func (d Direction) Sends() bool { return d == SendRecv || d == SendOnly }

// Receives reports whether the describing side wants to receive.
func (d Direction) Receives() bool { return d == SendRecv || d == RecvOnly }

// answerDirection returns the other side's direction that allows as much media as d does.
func (d Direction) answerDirection() Direction {
	switch d {
	case SendOnly:
		return RecvOnly
	case RecvOnly:
		return SendOnly
	}
	return d
}

// SDP is one side's session description, reduced to one audio stream. Other streams are stored so
// that an answer can reject each (RFC 3264, section 6).
type SDP struct {
	ID, Version uint64
	Address     netip.AddrPort // where audio is to be sent
	Codecs      []Codec        // in order of preference, including telephone-event
	Direction   Direction
	PacketTime  time.Duration
	// Secure means that the audio is described as SRTP (RTP/SAVP).
	Secure bool
	// Crypto has the keys of the describing side with supported suites, in order of preference. A
	// description of plain RTP may have some too: the other side may then choose SRTP.
	Crypto []srtp.Attribute

	audioIndex     int             // index of the audio among the media lines
	rejectedByLine []rejectedMedia // by index of the media line; nil at audioIndex
}

// rejectedMedia is a rejected media line; nil stands for the audio line.
type rejectedMedia = *sdp.MediaDescription

const (
	packetTime = 20 * time.Millisecond
	// maxSDPBytes is the largest accepted body in bytes.
	maxSDPBytes = 16 << 10
)

// ParseSDP parses a session description. The error is fault.KindInvalid if it is malformed, and
// fault.KindUnsupported if it has no usable audio.
func ParseSDP(body []byte) (*SDP, error) {
	if len(body) > maxSDPBytes {
		return nil, fault.Invalid("the session description is too long")
	}

	var d sdp.SessionDescription
	if err := d.Unmarshal(body); err != nil {
		return nil, &fault.Error{Kind: fault.KindInvalid, Message: "the session description cannot be read", Cause: err}
	}

	s := &SDP{
		ID: d.Origin.SessionID, Version: d.Origin.SessionVersion,
		audioIndex: -1, Direction: SendRecv, PacketTime: packetTime,
	}
	s.readDirection(d.Attributes)

	for i, media := range d.MediaDescriptions {
		if s.audioIndex < 0 && isAudio(media) {
			s.audioIndex = i
			s.rejectedByLine = append(s.rejectedByLine, nil)
			if err := s.readAudio(&d, media); err != nil {
				return nil, err
			}
			continue
		}

		s.rejectedByLine = append(s.rejectedByLine, rejectMedia(media))
	}

	if s.audioIndex < 0 {
		return nil, fault.New(fault.KindUnsupported, "the session description offers no audio over RTP")
	}

	return s, nil
}

// withoutHold returns a copy of the description with media in both directions.
func (s *SDP) withoutHold() *SDP {
	if s.Direction == SendRecv {
		return s
	}
	next := *s
	next.Direction, next.Version = SendRecv, s.Version+1
	return &next
}

func isAudio(media *sdp.MediaDescription) bool {
	return media.MediaName.Media == "audio" && media.MediaName.Port.Value > 0 && media.MediaName.Port.Value <= 65535 &&
		(isProfile(media, "AVP") || isProfile(media, "SAVP"))
}

func isProfile(media *sdp.MediaDescription, profile string) bool {
	return slices.Equal(media.MediaName.Protos, []string{"RTP", profile})
}

// readCrypto returns the keys with supported suites of a media line.
func readCrypto(media *sdp.MediaDescription) []srtp.Attribute {
	var found []srtp.Attribute
	for _, a := range media.Attributes {
		if a.Key != "crypto" || len(found) == maxCryptoLines {
			continue
		}

		c, err := srtp.ParseAttribute(a.Value)
		if err == nil { // the peer may offer others too
			found = append(found, c)
		}
	}

	return found
}

// maxCryptoLines is the number of crypto attributes that are read.
const maxCryptoLines = 16

// rejectMedia returns the media line that rejects one of an offer: port 0.
func rejectMedia(media *sdp.MediaDescription) rejectedMedia {
	return &sdp.MediaDescription{MediaName: sdp.MediaName{
		Media: media.MediaName.Media, Protos: media.MediaName.Protos, Formats: media.MediaName.Formats,
	}}
}

// readAudio applies the audio line.
func (s *SDP) readAudio(d *sdp.SessionDescription, media *sdp.MediaDescription) error {
	connection := media.ConnectionInformation
	if connection == nil {
		connection = d.ConnectionInformation
	}
	if connection == nil || connection.Address == nil {
		return fault.Invalid("the session description has no address for its audio")
	}

	host, _, _ := strings.Cut(connection.Address.Address, "/")
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return fault.Invalid("the session description's address is not an IP address")
	}

	s.Address = netip.AddrPortFrom(addr.Unmap(), uint16(media.MediaName.Port.Value))
	s.readDirection(media.Attributes)
	if addr.IsUnspecified() && s.Direction.Receives() {
		// a hold as in RFC 2543
		s.Direction = map[Direction]Direction{SendRecv: SendOnly, RecvOnly: Inactive}[s.Direction]
	}

	if text, ok := media.Attribute("ptime"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err == nil && n >= 10 && n <= 120 {
			s.PacketTime = time.Duration(n) * time.Millisecond
		}
	}

	s.Codecs = readCodecs(media)
	s.Secure, s.Crypto = isProfile(media, "SAVP"), readCrypto(media)
	return nil
}

func (s *SDP) readDirection(attributes []sdp.Attribute) {
	for _, a := range attributes {
		switch d := Direction(a.Key); d {
		case SendRecv, SendOnly, RecvOnly, Inactive:
			s.Direction = d
		}
	}
}

// readCodecs returns the formats of a media line that have a name.
func readCodecs(media *sdp.MediaDescription) []Codec {
	known := map[string]Codec{"0": PCMU(), "8": PCMA()} // RFC 3551: static payload types without rtpmap
	parameters := map[string]string{}
	for _, a := range media.Attributes {
		number, value, ok := strings.Cut(a.Value, " ")
		switch {
		case a.Key == "rtpmap" && ok:
			if c, ok := readCodec(value); ok {
				known[number] = c
			}
		case a.Key == "fmtp" && ok:
			parameters[number] = strings.TrimSpace(value)
		}
	}

	var codecs []Codec
	for _, format := range media.MediaName.Formats {
		c, ok := known[format]
		number, err := strconv.ParseUint(format, 10, 7)
		if !ok || err != nil {
			continue
		}

		c.PayloadType, c.Parameters = uint8(number), parameters[format]
		codecs = append(codecs, c)
	}

	return codecs
}

// readCodec parses name/clock[/channels].
func readCodec(text string) (Codec, bool) {
	parts := strings.Split(strings.TrimSpace(text), "/")
	if len(parts) < 2 || parts[0] == "" {
		return Codec{}, false
	}

	clock, err := strconv.ParseUint(parts[1], 10, 32)
	if err != nil || clock == 0 {
		return Codec{}, false
	}

	channels := 1
	if len(parts) > 2 {
		channels, err = strconv.Atoi(parts[2])
		if err != nil || channels < 1 {
			return Codec{}, false
		}
	}

	return Codec{Name: parts[0], Clock: uint32(clock), Channels: channels}, true
}
