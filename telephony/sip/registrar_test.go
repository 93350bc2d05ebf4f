package sip_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/telephony/sip"
)

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
