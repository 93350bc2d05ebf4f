package sip

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
)

const phoneOffer = "v=0\r\no=- 42 7 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n" +
	"m=video 4002 RTP/AVP 97\r\na=rtpmap:97 H264/90000\r\n" +
	"m=audio 4000 RTP/AVP 18 107 8 0 101 102\r\na=rtpmap:107 opus/48000/2\r\na=fmtp:107 useinbandfec=0\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=rtpmap:102 telephone-event/48000\r\na=ptime:30\r\na=sendonly\r\n"

func TestParseSDP(t *testing.T) {
	s, err := ParseSDP([]byte(phoneOffer))
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, c := range s.Codecs {
		names = append(names, c.Name)
	}

	if got := strings.Join(names, " "); got != "opus PCMA PCMU telephone-event telephone-event" {
		t.Errorf("codecs %s", got)
	}
	if s.Address != netip.MustParseAddrPort("192.0.2.9:4000") || s.Direction != SendOnly ||
		s.PacketTime != 30*time.Millisecond || s.ID != 42 || s.Version != 7 {
		t.Errorf("read %+v", s)
	}
}

func TestParseSDPRefuses(t *testing.T) {
	cases := map[string]struct {
		change [2]string
		want   fault.Kind
	}{
		"no audio":      {[2]string{"m=audio", "m=text"}, fault.KindUnsupported},
		"refused audio": {[2]string{"m=audio 4000", "m=audio 0"}, fault.KindUnsupported},
		"DTLS-SRTP": {[2]string{"m=audio 4000 RTP/AVP", "m=audio 4000 UDP/TLS/RTP/SAVPF"},
			fault.KindUnsupported},
		"a name for address": {[2]string{"c=IN IP4 192.0.2.9", "c=IN IP4 phone.example"}, fault.KindInvalid},
		"no address":         {[2]string{"c=IN IP4 192.0.2.9\r\n", ""}, fault.KindInvalid},
		"no SDP":             {[2]string{"v=0", "hello"}, fault.KindInvalid},
		"too long":           {[2]string{"s=-", "s=" + strings.Repeat("x", maxSDPBytes)}, fault.KindInvalid},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := ParseSDP([]byte(strings.Replace(phoneOffer, c.change[0], c.change[1], 1)))
			if fault.KindOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// FuzzSDP: each session that can be parsed can be answered, and the answer can be parsed.
func FuzzSDP(f *testing.F) {
	f.Add([]byte(phoneOffer))
	f.Add([]byte("v=0\r\no=- 1 1 IN IP6 ::1\r\ns=-\r\nc=IN IP6 ::1/127\r\nt=0 0\r\nm=audio 1 RTP/AVP 0\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := ParseSDP(body)
		if err != nil {
			return
		}

		answer, agreed, err := NewNegotiator(here, AllCodecs()).Answer(s)
		if err != nil {
			return
		}

		if len(agreed.Codecs) != 1 {
			t.Errorf("agreed on %v", agreed.Codecs)
		}

		written, err := answer.Bytes()
		if err != nil {
			t.Fatalf("writing the answer: %v", err)
		}

		if _, err := ParseSDP(written); err != nil {
			t.Errorf("the answer %q cannot be read: %v", written, err)
		}
	})
}
