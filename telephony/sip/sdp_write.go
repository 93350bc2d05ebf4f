package sip

import (
	"fmt"
	"net/netip"
	"strconv"

	"github.com/pion/sdp/v3"
)

// Bytes returns the description in SDP syntax.
func (s *SDP) Bytes() ([]byte, error) {
	host := s.Address.Addr()
	d := sdp.SessionDescription{
		Origin: sdp.Origin{
			Username: "-", SessionID: s.ID, SessionVersion: s.Version,
			NetworkType: "IN", AddressType: sdpAddressType(host), UnicastAddress: host.String(),
		},
		SessionName: "-",
		ConnectionInformation: &sdp.ConnectionInformation{NetworkType: "IN", AddressType: sdpAddressType(host),
			Address: &sdp.Address{Address: host.String()}},
		TimeDescriptions: []sdp.TimeDescription{{}},
	}

	for i := range max(len(s.rejectedByLine), s.audioIndex+1) {
		if i == s.audioIndex {
			d.MediaDescriptions = append(d.MediaDescriptions, s.audioMedia())
			continue
		}
		d.MediaDescriptions = append(d.MediaDescriptions, s.rejectedByLine[i])
	}

	body, err := d.Marshal()
	if err != nil {
		return nil, fmt.Errorf("writing a session description: %w", err)
	}

	return body, nil
}

func sdpAddressType(host netip.Addr) string {
	if host.Is4() {
		return "IP4"
	}
	return "IP6"
}

func (s *SDP) audioMedia() *sdp.MediaDescription {
	media := &sdp.MediaDescription{MediaName: sdp.MediaName{
		Media: "audio", Port: sdp.RangedPort{Value: int(s.Address.Port())}, Protos: []string{"RTP", "AVP"},
	}}

	if s.Secure {
		media.MediaName.Protos[1] = "SAVP"
	}

	for _, c := range s.Codecs {
		number := strconv.Itoa(int(c.PayloadType))
		media.MediaName.Formats = append(media.MediaName.Formats, number)

		format := fmt.Sprintf("%s %s/%d", number, c.Name, c.Clock)
		if c.Channels > 1 {
			format += "/" + strconv.Itoa(c.Channels)
		}

		media.Attributes = append(media.Attributes, sdp.NewAttribute("rtpmap", format))
		if c.Parameters != "" {
			media.Attributes = append(media.Attributes, sdp.NewAttribute("fmtp", number+" "+c.Parameters))
		}
	}

	for _, c := range s.Crypto {
		media.Attributes = append(media.Attributes, sdp.NewAttribute("crypto", c.String()))
	}

	media.Attributes = append(media.Attributes,
		sdp.NewAttribute("ptime", strconv.FormatInt(s.PacketTime.Milliseconds(), 10)),
		sdp.NewPropertyAttribute(string(s.Direction)))

	return media
}
