package sip_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/sip"
)

// TestGarbage sends messages with bytes changed, cut and doubled; the server
// lives, and a fixed seed makes a failure one that comes again.
func TestGarbage(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p, err := net.Dial("udp", w.server.Addr().String())
	must(t, err)
	defer p.Close()

	good := []string{
		fmt.Sprintf(optionsRequest, 1, 1),
		"REGISTER sip:acme.example SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKx;rport\r\nFrom: \"A\" <sip:1001@acme.example>;tag=1\r\nTo: <sip:1001@acme.example>\r\nCall-ID: g\r\nCSeq: 2 REGISTER\r\nContact: <sip:1001@127.0.0.1:9;transport=udp>;expires=60;+sip.instance=\"<urn:uuid:1>\", *\r\nAuthorization: Digest username=\"1001\", realm=\"acme.example\", nonce=\"AAAA\", uri=\"sip:x\", response=\"00\", qop=auth, nc=00000001, cnonce=\"c\"\r\nContent-Length: 0\r\n\r\n",
		"INVITE sip:ai-1@x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKi\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>;tag=2\r\nCall-ID: g\r\nCSeq: 1 INVITE\r\nRecord-Route: <sip:r;lr>\r\nSession-Expires: 90;refresher=uas\r\nRequire: timer\r\nContact: <sip:a@b>\r\nContent-Type: application/sdp\r\nContent-Length: 0\r\n\r\n",
		"BYE sip:ai-1@x SIP/2.0\r\nv: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKb\r\nf: <sip:a@b>;tag=1\r\nt: <sip:x>;tag=2\r\ni: g\r\nCSeq: 1 BYE\r\nReason: Q.850;cause=16\r\nl: 0\r\n\r\n",
		"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKnone\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>;tag=2\r\nCall-ID: g\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n",
	}
	random := rand.New(rand.NewPCG(1, 2))

	for range 3000 {
		b := []byte(good[random.IntN(len(good))])
		for range 1 + random.IntN(4) {
			at := random.IntN(len(b))
			switch random.IntN(4) {
			case 0:
				b[at] = byte(random.IntN(256))
			case 1:
				b = b[:at+1]
			case 2:
				b = append(b[:at:at], b[min(at+random.IntN(20), len(b)):]...)
			default:
				b = append(b[:at:at], append([]byte(strings.Repeat(string(b[at]), random.IntN(30))), b[at:]...)...)
			}

			if len(b) == 0 {
				break
			}
		}

		if _, err := p.Write(b); err != nil {
			t.Fatal(err)
		}
		if random.IntN(50) == 0 {
			time.Sleep(time.Millisecond)
		}
	}

	quiet := w.phone("1002", "1002")
	status(t, raw(quiet, "OPTIONS", "sip:"+domain, ""), 200)
	if w.metric("trunkline_sip_malformed_total", "") == 0 {
		t.Error("nothing was counted as malformed")
	}
}
