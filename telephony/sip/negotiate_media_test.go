package sip

import (
	"net/netip"
	"strings"
	"testing"

	"trunkline/internal/fault"
)

func parseOffer(t *testing.T, direction, formats string) *SDP {
	t.Helper()
	s, err := ParseSDP(
		[]byte("v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\nm=audio 4000 RTP/AVP " +
			formats +
			"\r\na=rtpmap:120 opus/48000/2\r\na=rtpmap:101 telephone-event/8000\r\n" + direction))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var here = netip.MustParseAddrPort("198.51.100.1:20000")

func TestAnswer(t *testing.T) {
	cases := map[string]struct {
		direction, formats string
		prefer             []Codec
		codec              string
		number             uint8
		want               Direction
		events             bool
	}{
		"the offer's first that we have": {"a=sendrecv\r\n", "18 8 0 101", nil, "PCMA", 8, SendRecv, true},
		"what is preferred": {"a=sendrecv\r\n", "8 0 101", []Codec{Opus(), PCMU()}, "PCMU", 0, SendRecv,
			true},
		"the offer's number":               {"", "120", nil, "opus", 120, SendRecv, false},
		"a hold":                           {"a=sendonly\r\n", "0", nil, "PCMU", 0, RecvOnly, false},
		"a hold without music":             {"a=inactive\r\n", "0", nil, "PCMU", 0, Inactive, false},
		"a listener":                       {"a=recvonly\r\n", "0", nil, "PCMU", 0, SendOnly, false},
		"a hold of old, by its address":    {"c=IN IP4 0.0.0.0\r\n", "0", nil, "PCMU", 0, RecvOnly, false},
		"opus with the keys at 8 kHz only": {"", "120 101", nil, "opus", 120, SendRecv, true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer, agreed, err := NewNegotiator(here, AllCodecs()).Answer(parseOffer(t, c.direction, c.formats),
				c.prefer...)
			if err != nil {
				t.Fatal(err)
			}

			body, err := answer.Bytes()
			if err != nil {
				t.Fatal(err)
			}

			back, err := ParseSDP(body)
			if err != nil {
				t.Fatalf("our answer %s: %v", body, err)
			}

			if back.Direction != c.want || back.Codecs[0].Name != c.codec || back.Codecs[0].PayloadType != c.number ||
				back.Address != here {
				t.Errorf("answered %s", body)
			}
			if agreed.Codecs[0].SendType != c.number || (agreed.TelephoneEvent.Name != "") != c.events ||
				agreed.PeerReceives != c.want.Sends() {
				t.Errorf("agreed on %+v", agreed)
			}
		})
	}
}

func TestAnswerRefusesOtherStreams(t *testing.T) {
	s, err := ParseSDP([]byte(phoneOffer))
	if err != nil {
		t.Fatal(err)
	}

	answer, _, err := NewNegotiator(here, AllCodecs()).Answer(s)
	if err != nil {
		t.Fatal(err)
	}

	body, err := answer.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	video, audio := strings.Index(string(body), "m=video 0 "), strings.Index(string(body), "m=audio 20000 ")
	if video < 0 || audio < video {
		t.Errorf("answered %s", body)
	}
}

func TestNoCommonCodec(t *testing.T) {
	if _, _, err := NewNegotiator(here,
		[]Codec{PCMU()}).Answer(parseOffer(t, "", "8 120")); fault.KindOf(err) != fault.KindUnsupported {
		t.Errorf("answering got %v", err)
	}
	local := NewNegotiator(here, AllCodecs())
	if _, err := local.AcceptAnswer(local.Offer(PCMU()),
		parseOffer(t, "", "8")); fault.KindOf(err) != fault.KindUnsupported {
		t.Errorf("accepting got %v", err)
	}
}

func TestAcceptKeepsBothSidesNumbers(t *testing.T) {
	local := NewNegotiator(here, AllCodecs())
	agreed, err := local.AcceptAnswer(local.Offer(), parseOffer(t, "", "120 0 101"))
	if err != nil {
		t.Fatal(err)
	}
	if len(agreed.Codecs) != 2 || agreed.Codecs[0].SendType != 120 ||
		agreed.Codecs[0].ReceiveType != Opus().PayloadType || agreed.TelephoneEvent.Clock != 8000 {
		t.Errorf("agreed on %+v", agreed)
	}
}

func TestVersionRisesWithWhatIsSaid(t *testing.T) {
	local := NewNegotiator(here, AllCodecs())
	one, two, three := local.Offer(), local.Offer(), local.Offer(PCMU())
	if one.Version != two.Version || three.Version != two.Version+1 || one.ID != three.ID {
		t.Errorf("versions %d %d %d", one.Version, two.Version, three.Version)
	}
}
