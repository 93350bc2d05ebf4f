package sip_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/sip"
)

// faulty panics where a call says so.
type faulty struct {
	*directory
	invites chan *sip.Invite
}

func (f faulty) SIPUser(ctx context.Context, host, username string) (sip.User, error) {
	if username == "bomb" {
		panic("the directory failed")
	}
	return f.directory.SIPUser(ctx, host, username)
}

func (f faulty) ServeInvite(ctx context.Context, i *sip.Invite) {
	if strings.HasSuffix(i.User(), "bomb") {
		panic("the handler failed")
	}
	f.invites <- i
	<-ctx.Done()
}

// A panic loses one call or message: the server continues.
func TestAPanicCostsOneCallOrMessage(t *testing.T) {
	f := faulty{directory: &directory{}, invites: make(chan *sip.Invite, 1)}
	w := &testEnv{t: t, reg: prometheus.NewRegistry(), devices: &recordedRegistrations{}, invites: f.invites}
	bindings, _ := redisBindings(t)
	var err error
	w.server, err = sip.New(
		sip.Config{Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0",
			TrustedNetworks: trustLoopback()}, Limits: sip.Limits{MaxCalls: 10}}, f, bindings, w.reg,
		slog.New(slog.DiscardHandler))
	must(t, err)
	w.server.Handle("", f)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { must(t, w.server.Run(ctx)) })

	w.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if n := w.metric("trunkline_sip_legs", ""); n != 0 {
			t.Errorf("%v legs are left", n)
		}
	})

	t.Cleanup(w.stop)

	bomb := w.phone("bomb", "x")
	status(t, bomb.Register(300), 500)
	if n := w.metric("trunkline_recovered_panics_total", "sip_request"); n != 1 {
		t.Errorf("%v panics of requests are counted", n)
	}

	p := w.phone("1001", "1001")
	status(t, p.Dial("bomb", p.Media().SDP("sendrecv", 0)).Answer, 503)
	eventually(t, "the panic is counted",
		func() bool { return w.metric("trunkline_recovered_panics_total", "sip_call") == 1 })
	eventually(t, "the call's place is free", func() bool { return w.metric("trunkline_sip_legs", "") == 0 })

	ready := make(chan struct{})
	q := w.phone("1002", "1002")
	go func() {
		defer close(ready)
		c := q.Dial("1003", q.Media().SDP("sendrecv", 0))
		status(t, c.Answer, 200)
		status(t, c.Send("INVITE", "", q.Media().SDP("sendonly", 0)), 488)
		status(t, c.Bye(), 200)
	}()

	i := w.invite()
	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	session, _, err := local.Answer(i.Offer())
	must(t, err)
	_, err = i.Answer(session, func(context.Context, *sip.SDP) (*sip.SDP, error) { panic("the offer failed") })
	must(t, err)
	<-ready

	if n := w.metric("trunkline_recovered_panics_total", "sip_call"); n != 2 {
		t.Errorf("%v panics of calls are counted", n)
	}
}
