package aisession_test

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/aisession"
	"trunkline/aisession/sipcall"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// TestACallThatIsConnectedAlready hands a caller's media to a session, as click
// to call to a provider does.
func TestACallThatIsConnectedAlready(t *testing.T) {
	p := startProvider(t, 160, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	provider := configOf(p, "g711_ulaw")
	h.providers = map[string]aiprovider.Provider{"prov1": provider}
	ports, err := rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 31600, MaxPort: 31640},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	mine, theirs, agreed := connectPhone(t, ports)
	handler := sipcall.New(sipcall.Deps{
		Sessions: h.Service, Providers: envProviders{h}, Ports: ports, Log: slog.New(slog.DiscardHandler),
		MayCall: func(caller, provider string) bool { return caller == provider }, Admission: callLimits{},
	})

	local := localcall.Call{Destination: "ai-prov1", AccountID: provider.AccountID, CallID: "here",
		OtherLegCallID: "there",
		Caller:         "1001", Port: theirs, Negotiated: agreed}

	for _, unknown := range []localcall.Call{{Destination: "ai-nobody", AccountID: provider.AccountID},
		{Destination: "ai-prov1", AccountID: "another"}} {
		if _, err := handler.Connect(t.Context(), unknown); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("%+v: %v", unknown, err)
		}
	}

	ctx, hangUp := context.WithCancel(t.Context())
	taken, err := handler.Connect(ctx, local)
	if err != nil {
		t.Fatal(err)
	}

	talk, quiet := context.WithCancel(t.Context())
	talking := make(chan struct{})
	go func() { defer close(talking); mine.talk(talk, audio.Format{Encoding: audio.ULaw, Rate: 8000}) }()
	hearsTone(t, audio.Format{Encoding: audio.ULaw, Rate: 8000}, 30, mine.receivedPackets)
	quiet()
	<-talking
	v := p.nextConnection()
	if start := v.waitFor(t, "start", 1); !strings.Contains(string(start.body),
		`"callId":"here","otherLegCallId":"there","callerIdNumber":"1001","calleeIdNumber":"ai-prov1"`) {
		t.Errorf("start: %s", start.body)
	}

	hangUp()
	<-taken.Done()
	if taken.Cause() != sip.NormalClearing {
		t.Errorf("ended with %s", taken.Cause())
	}

	v.waitHangup(t, "NORMAL_CLEARING")
}

// connectPhone returns a phone, and the port that its media comes to, after an offer and its answer.
func connectPhone(t *testing.T, ports *rtp.Ports) (phone *sipPhone, far *rtp.Port, agreed sip.NegotiatedMedia) {
	t.Helper()
	near, far := openPort(t, ports), openPort(t, ports)
	caller, called := sip.NewNegotiator(near.Addr(), sip.AllCodecs()), sip.NewNegotiator(far.Addr(), sip.AllCodecs())
	offer := caller.Offer(sip.PCMU())
	answer, agreed, err := called.Answer(offer)
	if err != nil {
		t.Fatal(err)
	}

	theirs, err := caller.AcceptAnswer(offer, answer)
	if err != nil {
		t.Fatal(err)
	}

	phone = &sipPhone{port: near, format: theirs.Codecs[0], dtmf: rtp.DTMFReceiver{Clock: theirs.TelephoneEvent.Clock}}
	near.SetRemote(theirs.RemoteAddr, theirs.RemoteAddr.Addr())
	far.SetRemote(agreed.RemoteAddr, agreed.RemoteAddr.Addr())
	near.SetReceiver(phone)
	phone.stream = rtp.NewStream(near,
		rtp.Format{PayloadType: phone.format.SendType, Clock: phone.format.Clock, Frame: 20 * time.Millisecond})

	return phone, far, agreed
}
