package sip_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/sip"
)

const options = "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1:5;branch=z9hG4bK%d\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>\r\nCall-ID: tcp\r\nCSeq: %d OPTIONS\r\nContent-Length: 0\r\n\r\n"

func TestOverTCP(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	conn, err := net.Dial("tcp", w.server.Addr().String())
	must(t, err)
	defer conn.Close()

	answers := bufio.NewReader(conn)
	for i := range 3 {
		_, err := fmt.Fprintf(conn, options, i, i+1)
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(patience)))
		line, err := answers.ReadString('\n')
		must(t, err)

		if !strings.HasPrefix(line, "SIP/2.0 200") {
			t.Errorf("answered %q", line)
		}

		for line != "\r\n" {
			line, err = answers.ReadString('\n')
			must(t, err)
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{MaxConnections: 20}}, nil) // two for one address
	for range 3 {
		conn, err := net.Dial("tcp", w.server.Addr().String())
		must(t, err)
		defer conn.Close()
	}
	eventually(t, "the third connection is closed",
		func() bool { return w.metric("trunkline_sip_flood_dropped_total", "connections") == 1 })
}

func TestFloodFromOneAddress(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{PerAddress: 20}}, nil)
	p := w.phone("1001", "1001")
	for i := range 500 {
		p.Write(fmt.Sprintf(
			"INVITE sip:ai-1@x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKf%d\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>\r\nCall-ID: f%d\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n",
			i, i))
	}

	eventually(t, "the flood is dropped",
		func() bool { return w.metric("trunkline_sip_flood_dropped_total", "address") > 100 })
	time.Sleep(150 * time.Millisecond) // three more messages are allowed by now
	status(t, raw(p, "OPTIONS", "sip:"+domain, ""), 200)
}

func TestFloodOfAll(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{PerAddress: 10_000, Requests: 20}}, nil)
	p := w.phone("1001", "1001")
	for range 200 {
		p.Write("OPTIONS x\r\n\r\n")
	}
	eventually(t, "the flood is dropped",
		func() bool { return w.metric("trunkline_sip_flood_dropped_total", "overall") > 100 })
}

func TestTooManyCalls(t *testing.T) {
	w := newTestEnv(t,
		sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}, Limits: sip.Limits{MaxCalls: 1}}, nil)
	c, leg := up(t, w)
	p := w.phone("1002", "1002")
	refused := p.Dial("ai-1", p.Media().SDP("sendrecv", 0))
	status(t, refused.Answer, 503)

	if refused.Answer.GetHeader("Retry-After") == nil {
		t.Error("503 without Retry-After")
	}

	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	if _, err := w.server.Dial(t.Context(),
		sip.OutgoingCall{Target: sip.Target{URI: "sip:x@127.0.0.1:9"}, Offer: local.Offer()}); sip.FailureCause(
		err) != sip.SwitchCongestion {
		t.Errorf("dialling got %v", err)
	}

	leg.Hangup(sip.NormalClearing)
	c.WaitBye()
}

// udpFrom is a socket at another loopback address, as another host would have.
func udpFrom(t *testing.T, w *testEnv, address string) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address)}, net.UDPAddrFromAddrPort(w.server.Addr()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

var registers int

// register sends a REGISTER of 1001, again until it is answered, and returns the
// response.
func register(t *testing.T, conn *net.UDPConn, headers string) string {
	t.Helper()
	registers++
	text := fmt.Sprintf(
		"REGISTER sip:%s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKr%d;rport\r\nFrom: <sip:1001@%s>;tag=1\r\nTo: <sip:1001@%s>\r\n"+
			"Call-ID: r%d\r\nCSeq: 1 REGISTER\r\nContact: <sip:1001@%s>;expires=300\r\n%sContent-Length: 0\r\n\r\n",
		domain, conn.LocalAddr(), registers, domain, domain, registers, conn.LocalAddr(), headers)
	answer := make([]byte, 4096)

	for range 20 {
		_, err := conn.Write([]byte(text))
		must(t, err)
		must(t, conn.SetReadDeadline(time.Now().Add(500*time.Millisecond)))

		for {
			n, err := conn.Read(answer)
			if err != nil {
				break
			}

			if text := string(answer[:n]); strings.Contains(text, fmt.Sprintf("Call-ID: r%d\r\n", registers)) {
				return text // and not a second response to an earlier REGISTER
			}
		}
	}

	t.Fatal("no answer to a REGISTER")
	return ""
}

func challengeIn(t *testing.T, answer string) string {
	t.Helper()
	_, challenge, ok := strings.Cut(answer, "WWW-Authenticate: ")
	if !ok {
		t.Fatalf("no challenge in %s", answer)
	}
	challenge, _, _ = strings.Cut(challenge, "\r\n")
	return challenge
}

// TestForgedDatagramsCountAgainstNobody: an attacker at another address, who can send with the phone's
// source address but does not receive there, can neither use its own nonce there nor learn whether a
// password is correct.
func TestForgedDatagramsCountAgainstNobody(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	attacker, victim := udpFrom(t, w, "127.0.0.2"), udpFrom(t, w, "127.0.0.1")
	p := w.phone("1001", "1001") // makes the proofs
	uri := "sip:" + domain
	nonce := challengeIn(t, register(t, attacker, ""))
	answers := map[string]bool{}

	for range 2 * maxFailures {
		for _, password := range []string{"wrong", "1001"} {
			p.Password = password
			// as if forged
			answer := register(t, victim, "Authorization: "+p.Authorization(nonce, "REGISTER", uri)+"\r\n")
			status, _, _ := strings.Cut(answer, "\r\n")
			_, stale, _ := strings.Cut(challengeIn(t, answer), "qop=")
			answers[status+stale] = true
		}
	}

	if len(answers) != 1 || !answers[`SIP/2.0 401 Unauthorized"auth",stale=true`] {
		t.Errorf("a nonce of another address got %v", answers)
	}
	if n := w.users.failed("1001"); n != 0 {
		t.Errorf("%d failures were counted", n)
	}

	p.Password = "1001"
	status(t, p.Register(300), 200)
}

// TestGuessesLockNoRegisteredPhone: guesses from an address of the attacker's
// own are counted and then refused; the phone continues.
func TestGuessesLockNoRegisteredPhone(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p := w.phone("1001", "1001")
	status(t, p.Register(300), 200)
	attacker := udpFrom(t, w, "127.0.0.2")
	guesser := w.phone("1001", "wrong")

	for range 2 * maxFailures {
		nonce := challengeIn(t, register(t, attacker, ""))
		answer := register(t, attacker,
			"Authorization: "+guesser.Authorization(nonce, "REGISTER", "sip:"+domain)+"\r\n")
		if !strings.HasPrefix(answer, "SIP/2.0 403") {
			t.Errorf("a guess got %s", answer)
		}
	}

	if n := w.users.failed("1001"); n != maxFailures {
		t.Errorf("%d guesses were compared", n)
	}

	guesser.Password = "1001"
	nonce := challengeIn(t, register(t, attacker, ""))
	if answer := register(t, attacker,
		"Authorization: "+guesser.Authorization(nonce, "REGISTER", "sip:"+domain)+"\r\n"); !strings.HasPrefix(answer,
		"SIP/2.0 403") {
		t.Errorf("the right guess above the limit got %s", answer)
	}

	status(t, p.Register(300), 200)
}

func TestExpiredNoncesGiveNoOracle(t *testing.T) {
	w := newTestEnv(t, sip.Config{NonceLifetime: time.Nanosecond}, nil)
	conn, p := udpFrom(t, w, "127.0.0.1"), w.phone("1001", "1001")
	nonce := challengeIn(t, register(t, conn, ""))

	for _, password := range []string{"wrong", "1001"} {
		p.Password = password
		answer := register(t, conn, "Authorization: "+p.Authorization(nonce, "REGISTER", "sip:"+domain)+"\r\n")
		if !strings.HasPrefix(answer, "SIP/2.0 401") || !strings.Contains(answer, "stale=true") {
			t.Errorf("password %s with an expired nonce got %s", password, answer)
		}
	}
}

func TestDigestWithSHA256(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{DigestAlgorithms: []string{"sha-256", "md5"}}}, nil)
	answer := register(t, udpFrom(t, w, "127.0.0.1"), "")
	if first := challengeIn(t, answer); !strings.Contains(first, "algorithm=SHA-256") ||
		strings.Count(answer, "WWW-Authenticate") != 2 {
		t.Errorf("asked with %s", answer)
	}
	status(t, w.phone("1001", "1001").Register(300), 200)
	status(t, w.phone("1001", "wrong").Register(300), 403)
}

// TestGarbage sends messages with bytes changed, cut and doubled; the server
// lives, and a fixed seed makes a failure one that comes again.
func TestGarbage(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p, err := net.Dial("udp", w.server.Addr().String())
	must(t, err)
	defer p.Close()

	good := []string{
		fmt.Sprintf(options, 1, 1),
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
