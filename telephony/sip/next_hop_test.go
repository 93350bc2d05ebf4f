package sip_test

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

// startBystander counts the datagrams to an address that must receive none.
func startBystander(t *testing.T) (addr string, came *atomic.Int64) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	must(t, err)

	came = &atomic.Int64{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for buffer := make([]byte, 2000); ; came.Add(1) {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	}()

	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})

	return conn.LocalAddr().String(), came
}

// Requests to a trunk are sent to its address, regardless of its Contact and Record-Route.
func TestRecordRouteNeverBeatsTheFixedDestination(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)

	elsewhere, came := startBystander(t)
	trunk := w.phone("trunk", "x")
	trunk.OnCall(func(c *siptest.Call) {
		body := trunk.Media().SDP("sendrecv", 0)
		answer := &strings.Builder{}
		fmt.Fprintf(answer,
			"SIP/2.0 200 OK\r\nVia: %s\r\nRecord-Route: <sip:%s;lr>\r\nFrom: %s\r\nTo: %s;tag=t\r\nCall-ID: %s\r\nCSeq: %s\r\nContact: <sip:trunk@%s>\r\nContent-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s",
			c.Invite.Via().Value(), elsewhere, c.Invite.From().Value(), c.Invite.To().Value(), c.CallID,
			c.Invite.CSeq().Value(), elsewhere, len(body), body)
		trunk.Write(answer.String())
	})

	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	for name, destination := range map[string]string{
		"by address": trunk.Addr(),
		"by name":    strings.Replace(trunk.Addr(), "127.0.0.1", "localhost", 1),
	} {
		leg, err := w.server.Dial(t.Context(), sip.OutgoingCall{
			Target: sip.Target{URI: "sip:+4930123@" + trunk.Addr(), Destination: destination}, Offer: local.Offer(),
		})
		must(t, err)
		c := trunk.WaitCall()
		c.WaitAck()
		leg.Hangup(sip.NormalClearing)
		c.WaitBye()

		if n := came.Load(); n != 0 {
			t.Fatalf("%s: %d messages went to the address of Record-Route", name, n)
		}
	}
}

// A trusted peer may name a proxy for the call's requests, but only a trusted one.
func TestRequestsOfATrustedCallStayInTrustedNetworks(t *testing.T) {
	for name, c := range map[string]struct {
		header string // with the bystander's address
		want   bool   // it gets the BYE
	}{
		"a route to a trusted host":   {"Record-Route: <sip:%s;lr>\r\n", true},
		"a route to a stranger":       {"Record-Route: <sip:192.0.2.1:%[2]s;lr>\r\n", false},
		"a route to a name":           {"Record-Route: <sip:victim.example;lr>\r\n", false},
		"a route that cannot be read": {"Record-Route: <<<%[3]s\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
			elsewhere, came := startBystander(t)
			_, port, _ := net.SplitHostPort(elsewhere)
			header := strings.NewReplacer("%s", elsewhere, "%[2]s", port, "%[3]s", "").Replace(c.header)
			p := w.phone("pbx", "x")
			callID := "routed-" + p.Addr()
			_, responses := p.Request("INVITE", "sip:ai-1@"+domain, "<sip:pbx@"+domain+">;tag=1",
				"<sip:ai-1@"+domain+">", callID, 1, header, p.Media().SDP("sendrecv", 0))
			leg, _ := answer(t, w.invite())

			var ok *sipmsg.Response
			for ok = <-responses; ok.IsProvisional(); {
				ok = <-responses
			}

			p.Write(fmt.Sprintf(
				"ACK sip:ai-1@%s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bKack\r\nFrom: <sip:pbx@%s>;tag=1\r\nTo: %s\r\nCall-ID: %s\r\nCSeq: 1 ACK\r\nContent-Length: 0\r\n\r\n",
				domain, p.Addr(), domain, ok.To().Value(), callID))
			leg.Hangup(sip.NormalClearing)

			if c.want {
				eventually(t, "the BYE comes by the route", func() bool { return came.Load() > 0 })
				return
			}

			time.Sleep(100 * time.Millisecond)
			if n := came.Load(); n != 0 {
				t.Errorf("%d messages left the trusted networks", n)
			}
		})
	}
}

// A phone's requests go to its registered address.
func TestAPhonesRecordRouteIsNotFollowed(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	elsewhere, came := startBystander(t)
	p := w.phone("1001", "1001")
	status(t, p.Register(300), 200)
	p.OnCall(func(c *siptest.Call) {
		c.ReplyWith(c.Invite, 200, "Record-Route: <sip:"+elsewhere+";lr>\r\n", p.Media().SDP("sendrecv", 0))
	})
	found, err := w.server.Registrations.List(t.Context(), "acme", "1001")
	must(t, err)
	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	leg, err := w.server.Dial(t.Context(), sip.OutgoingCall{Target: found[0].Target(), Offer: local.Offer()})
	must(t, err)
	c := p.WaitCall()
	c.WaitAck()
	leg.Hangup(sip.NormalClearing)
	c.WaitBye()

	if n := came.Load(); n != 0 {
		t.Errorf("%d messages went to the address of Record-Route", n)
	}
}
