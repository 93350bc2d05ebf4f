package sip_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/sip"
)

const offerOfNobody = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n"

// message is a request from an address that has proven nothing.
func message(method, body, more string) string {
	return fmt.Sprintf(
		"%s sip:1002@acme.example SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK%s%d;rport\r\nFrom: <sip:1001@acme.example>;tag=1\r\nTo: <sip:1001@acme.example>\r\n"+
			"Call-ID: %s\r\nCSeq: 1 %s\r\n%sContent-Length: %d\r\n\r\n%s", method, method, time.Now().UnixNano(),
		method,
		method, more, len(body), body)
}

// exchange sends text count times, waits for an answer if there must be one, and returns the bytes sent
// and received, and the number of answers.
func exchange(t *testing.T, w *testEnv, text string, count int, answered bool) (in, out, answers int) {
	t.Helper()
	conn, err := net.Dial("udp", w.server.Addr().String())
	must(t, err)
	defer conn.Close()

	buffer := make([]byte, 65536)
	read := func() bool {
		n, err := conn.Read(buffer)
		if err != nil {
			return false
		}
		out, answers = out+n, answers+1
		return true
	}

	for range count {
		_, err := conn.Write([]byte(text))
		must(t, err)
		in += len(text)
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		for read() {
		}
	}

	if answered && answers == 0 {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		read()
	}

	return in, out, answers
}

func TestAnUnprovenSenderGetsLessThanItSends(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)

	phoneHeaders := "Max-Forwards: 70\r\nContact: <sip:1001-0x55d0c8c0@127.0.0.1:5071;transport=udp>;expires=60\r\nUser-Agent: baresip v1.0.0 (x86_64/linux)\r\n" +
		"Allow: INVITE,ACK,BYE,CANCEL,OPTIONS,NOTIFY,SUBSCRIBE,INFO,MESSAGE,REFER\r\nSupported: gruu,outbound,path\r\n"
	for name, c := range map[string]struct {
		text     string
		answered bool // at the first attempt
	}{
		"a short OPTIONS":        {message("OPTIONS", "", ""), false},
		"a short REGISTER":       {message("REGISTER", "", ""), false},
		"a short INVITE":         {message("INVITE", "", ""), false},
		"a short BYE":            {message("BYE", "", ""), false},
		"an unknown method":      {message("HELLO", "", ""), false},
		"a request without CSeq": {strings.Replace(message("OPTIONS", "", ""), "CSeq", "X-CSeq", 1), false},
		"an OPTIONS of a phone":  {message("OPTIONS", "", phoneHeaders), true},
		"a REGISTER of a phone":  {message("REGISTER", "", phoneHeaders), true},
		"an INVITE with its offer": {message("INVITE", offerOfNobody, phoneHeaders+"Content-Type: application/sdp\r\n"),
			true},
	} {
		in, out, answers := exchange(t, w, c.text, 1, c.answered)
		t.Logf("%s: %d bytes in, %d out", name, in, out)
		if 4*out > 3*in {
			t.Errorf("%s of %d bytes was answered with %d", name, in, out)
		}
		if (answers > 0) != c.answered {
			t.Errorf("%s got %d answers", name, answers)
		}
	}

	if in, out, _ := exchange(t, w, message("REGISTER", "", ""), 20, true); 4*out > 3*in || out == 0 {
		t.Errorf("a REGISTER sent again: %d bytes in, %d out", in, out)
	}
	if w.metric("trunkline_sip_flood_dropped_total", "unproven") == 0 {
		t.Error("the answers that were not sent are not counted")
	}
}

func TestAPhoneThatHasAuthenticatedGetsWholeAnswers(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p := w.phone("1001", "1001")
	status(t, p.Register(300), 200)
	r := raw(p, "OPTIONS", "sip:"+domain, "")
	status(t, r, 200)
	if r.GetHeader("Allow") == nil || r.GetHeader("Accept") == nil {
		t.Errorf("answered %s", r)
	}
}
