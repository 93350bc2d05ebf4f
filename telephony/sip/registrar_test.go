package sip_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func status(t *testing.T, r *sipmsg.Response, want int) {
	t.Helper()
	if r.StatusCode != want {
		t.Errorf("got %d, want %d", r.StatusCode, want)
	}
}

func TestRegister(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p := w.phone("1001", "1001")
	r := p.Register(300)
	status(t, r, 200)

	if got := r.GetHeader("Contact").Value(); !strings.Contains(got, "expires=300") {
		t.Errorf("the contact is %s", got)
	}

	status(t, p.Register(600), 200) // a refresh is not reported
	found, err := w.server.Registrations.List(t.Context(), "acme", "1001")
	must(t, err)

	if len(found) != 1 || found[0].UserID != "user-1001" || time.Until(found[0].Expires) < 500*time.Second {
		t.Errorf("registered %+v", found)
	}

	r = p.Register(1 << 20)
	if got := r.GetHeader("Contact").Value(); !strings.Contains(got, "expires=3600") {
		t.Errorf("too long a life is %s", got)
	}

	r = p.Register(10)
	status(t, r, 423)
	if r.GetHeader("Min-Expires").Value() != "60" {
		t.Error("423 without Min-Expires")
	}

	status(t, p.Register(0), 200)
	if ok, err := w.server.Registrations.Exist(t.Context(), "acme", "1001"); ok || err != nil {
		t.Errorf("still registered: %v", err)
	}
	if got := w.devices.all(); !slices.Equal(got, []string{"1001 came", "1001 unregistered"}) {
		t.Errorf("told of %v", got)
	}
}

func TestUnregisterAll(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p, q := w.phone("1001", "1001"), w.phone("1001", "1001")
	status(t, p.Register(300), 200)
	status(t, q.Register(300), 200)
	uri := "sip:" + domain
	send := func(headers string) *sipmsg.Response { return p.RequestWithoutContact("REGISTER", uri, headers) }
	challenge := send("").GetHeader("WWW-Authenticate").Value()
	proven := func(headers string) *sipmsg.Response {
		return send(headers + "Authorization: " + p.Authorization(challenge, "REGISTER", uri) + "\r\n")
	}
	status(t, proven("Contact: *\r\nExpires: 300\r\n"), 400)
	status(t, proven("Contact: *\r\nContact: <sip:x@y>\r\nExpires: 0\r\n"), 400)

	if r := proven(""); len(r.GetHeaders("Contact")) != 2 {
		t.Errorf("a question was answered %s", r)
	}

	r := proven("Contact: *\r\nExpires: 0\r\n")
	status(t, r, 200)
	if got := w.devices.all(); len(r.GetHeaders("Contact")) != 0 ||
		!slices.Equal(got, []string{"1001 came", "1001 came", "1001 unregistered", "1001 unregistered"}) {
		t.Errorf("answered %s, told of %v", r, got)
	}
}

// raw sends a request outside any dialog, from and to the phone's own address.
func raw(p *siptest.Phone, method, uri, headers string) *sipmsg.Response {
	aor := fmt.Sprintf("<sip:%s@%s>", p.User, p.Domain)
	rawCount++
	_, responses := p.Request(method, uri, aor+";tag=raw", aor, fmt.Sprint("raw-", rawCount), 1, headers, "")
	return p.WaitFinal(responses)
}

var rawCount int

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

func TestExpiryIsTold(t *testing.T) {
	w := newTestEnv(t, sip.Config{MinExpires: time.Second}, nil)
	status(t, w.phone("1001", "1001").Register(1), 200)
	eventually(t, "the phone's expiry is told", func() bool {
		return slices.Equal(w.devices.all(), []string{"1001 came", "1001 expired"})
	})
}

func TestOnePhoneTooMany(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{MaxContacts: 2}}, nil)
	for range 3 {
		status(t, w.phone("1001", "1001").Register(300), 200)
	}

	if got := w.devices.all(); !slices.Equal(got, []string{"1001 came", "1001 came", "1001 came", "1001 replaced"}) {
		t.Errorf("told of %v", got)
	}

	found, err := w.server.Registrations.List(t.Context(), "acme", "1001")
	if err != nil || len(found) != 2 {
		t.Errorf("registered %+v %v", found, err)
	}
}

func TestRegistrationsAway(t *testing.T) {
	bindings, redis := redisBindings(t)
	w := newTestEnv(t, sip.Config{}, bindings)
	p := w.phone("1001", "1001")
	status(t, p.Register(300), 200)
	redis.SetError("down")
	r := p.Register(300)
	status(t, r, 503)

	if r.GetHeader("Retry-After") == nil {
		t.Error("503 without Retry-After")
	}

	redis.SetError("")
	status(t, p.Register(300), 200)
}
