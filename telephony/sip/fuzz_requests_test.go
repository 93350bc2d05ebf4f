package sip

import (
	"net/netip"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// FuzzRequest: each request that the stack can parse is handled without a
// panic.
func FuzzRequest(f *testing.F) {
	f.Add([]byte("REGISTER sip:a SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:1@a>;tag=1\r\nTo: <sip:1@a>\r\nCall-ID: c\r\nCSeq: 1 REGISTER\r\nContact: <sip:1@h>;expires=60, *\r\nExpires: 0\r\nAuthorization: Digest realm=\"a\", nonce=\"n\", qop=auth, nc=1\r\nContent-Length: 0\r\n\r\n"))
	f.Add([]byte("INVITE sip:a SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKx\r\nFrom: <sip:1@a>;tag=1\r\nTo: <sip:1@a>\r\nCall-ID: c\r\nCSeq: 1 INVITE\r\nx: 90;refresher=uas\r\nk: timer\r\nRequire: 100rel\r\nReason: Q.850;cause=1\r\nContent-Length: 0\r\n\r\n"))

	g := &Registrations{minExpires: time.Minute, maxContacts: 10}
	f.Fuzz(func(t *testing.T, b []byte) {
		message, err := sipmsg.ParseMessage(b)
		if err != nil {
			return
		}

		r, ok := message.(*sipmsg.Request)
		if !ok || !hasMandatoryHeaders(r) {
			return
		}

		asked, refusal := g.readContacts(r, User{Extension: "1"}, netip.AddrPort{})
		if refusal.code == 0 && len(asked.contacts) > g.maxContacts {
			t.Errorf("%d contacts", len(asked.contacts))
		}
		if c, ok := credentials(r, "Authorization", "a"); ok {
			digestMatches(c, r.Method, HA1{MD5: "0", SHA256: "0"})
		}

		unsupportedExtension(r)
		causeOfReason(headerValue(r, "Reason"))
		l := &Leg{}
		l.acceptSessionTimer(r, newResponse(r, status{200, "OK"}, "tag"))
		_ = newResponse(r, status{400, "Bad Request"}, "").String()
	})
}

// FuzzNotify: the body of a NOTIFY is a status, or an error.
func FuzzNotify(f *testing.F) {
	f.Add([]byte("SIP/2.0 200 OK"))
	f.Add([]byte("SIP/2.0 999 No"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if code, err := parseSipfrag(body); err == nil && (code < 100 || code > 699) {
			t.Errorf("took %d", code)
		}
	})
}
