package sip_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

// udpFrom is a socket at another loopback address, as another host would have.
func udpFrom(t *testing.T, w *testEnv, address string) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(address)}, net.UDPAddrFromAddrPort(w.server.Addr()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
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

var registerCount int

// register sends a REGISTER of 1001, again until it is answered, and returns the
// response.
func register(t *testing.T, conn *net.UDPConn, headers string) string {
	t.Helper()
	registerCount++
	text := fmt.Sprintf(
		"REGISTER sip:%s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKr%d;rport\r\nFrom: <sip:1001@%s>;tag=1\r\nTo: <sip:1001@%s>\r\n"+
			"Call-ID: r%d\r\nCSeq: 1 REGISTER\r\nContact: <sip:1001@%s>;expires=300\r\n%sContent-Length: 0\r\n\r\n",
		domain, conn.LocalAddr(), registerCount, domain, domain, registerCount, conn.LocalAddr(), headers)
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

			if text := string(answer[:n]); strings.Contains(text, fmt.Sprintf("Call-ID: r%d\r\n", registerCount)) {
				return text // and not a second response to an earlier REGISTER
			}
		}
	}

	t.Fatal("no answer to a REGISTER")
	return ""
}

func TestWhoMayNotRegister(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	status(t, w.phone("1001", "wrong").Register(300), 403)
	nobody := w.phone("nobody", "x")
	first := raw(nobody, "REGISTER", "sip:"+domain, "")
	if !strings.Contains(first.GetHeader("WWW-Authenticate").Value(), `realm="`+domain+`"`) {
		t.Error("the challenge reveals that a user does not exist")
	}

	status(t, nobody.Register(300), 403)
	if got := w.devices.all(); len(got) != 0 {
		t.Errorf("told of %v", got)
	}
}

func TestProofs(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p := w.phone("1001", "1001")
	uri := "sip:" + domain
	challenge := raw(p, "REGISTER", uri, "").GetHeader("WWW-Authenticate").Value()
	proof := "Authorization: " + p.Authorization(challenge, "REGISTER", uri) + "\r\n"
	status(t, raw(p, "REGISTER", uri, proof), 200)
	replayed := raw(p, "REGISTER", uri, proof)
	status(t, replayed, 401)
	status(t, raw(p, "REGISTER", uri, "Authorization: "+p.Authorization(challenge, "REGISTER", uri)+"\r\n"), 200)

	for name, c := range map[string]string{
		"of another method": p.Authorization(challenge, "INVITE", uri),
		"of another user": strings.Replace(p.Authorization(challenge, "REGISTER", uri), `username="1001"`,
			`username="1002"`, 1),
		"without qop": strings.Replace(p.Authorization(challenge, "REGISTER", uri), "qop=auth, ", "", 1),
		"of another algorith": strings.Replace(p.Authorization(challenge, "REGISTER", uri), "algorithm=MD5",
			"algorithm=SHA-256", 1),
	} {
		if r := raw(p, "REGISTER", uri, "Authorization: "+c+"\r\n"); r.StatusCode != 403 {
			t.Errorf("a proof %s got %d", name, r.StatusCode)
		}
	}

	if n := w.users.failed("1001"); n != 4 {
		t.Errorf("%d failures were counted, want those of the four wrong proofs", n)
	}
}

func TestNoncesGrowOld(t *testing.T) {
	// it asks all the time
	w := newTestEnv(t, sip.Config{NonceLifetime: 300 * time.Millisecond, Limits: sip.Limits{PerAddress: 1000}}, nil)
	p := w.phone("1001", "1001")
	uri := "sip:" + domain
	challenge := raw(p, "REGISTER", uri, "").GetHeader("WWW-Authenticate").Value()
	eventually(t, "the nonce has grown old", func() bool {
		r := raw(p, "REGISTER", uri, "Authorization: "+p.Authorization(challenge, "REGISTER", uri)+"\r\n")
		return r.StatusCode == 401 && strings.Contains(r.GetHeader("WWW-Authenticate").Value(), "stale=true")
	})
}

func TestCallsOfPhones(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	registered := w.phone("1001", "1001")
	sdp := registered.Media().SDP("sendrecv", 0)
	stranger := w.phone("1002", "1002")
	status(t, stranger.Dial("ai-1", sdp).Answer, 403) // not registered
	status(t, registered.Register(300), 200)
	done := make(chan *siptest.Call)
	go func() { done <- registered.Dial("ai-1", sdp) }()
	i := w.invite()
	if i.Caller().UserID != "user-1001" || i.User() != "ai-1" || i.From().User != "1001" {
		t.Errorf("called by %+v", i.Caller())
	}

	leg, _ := answer(t, i)
	<-done
	leg.Hangup(sip.NormalClearing)
	liar := w.phone("1003", "wrong")

	for range maxFailures {
		status(t, liar.Dial("ai-1", sdp).Answer, 403)
	}

	liar.Password = "1003"
	status(t, liar.Dial("ai-1", sdp).Answer, 403)
	if w.metric("trunkline_sip_flood_dropped_total", "failures") != 1 || w.users.failed("1003") != maxFailures {
		t.Error("the guess above the limit was not refused and counted")
	}
}
