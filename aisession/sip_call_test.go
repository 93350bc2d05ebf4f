package aisession_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"trunkline/aisession"
	"trunkline/aisession/sipcall"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// nobody is a directory without users. The network is trusted.
type nobody struct{}

func (nobody) SIPUser(context.Context, string, string) (sip.User, error) {
	return sip.User{}, fault.NotFound("no such user")
}

func (nobody) Authenticate(context.Context, sip.User, netip.Addr, func(sip.HA1) bool) error {
	return fault.Unauthenticated("no such user")
}

// userAgent is a SIP server with media ports, running.
type userAgent struct {
	*sip.Server
	ports   *rtp.Ports
	metrics *prometheus.Registry // of the ports
}

// portsInUse returns the number of media ports in use.
func (u *userAgent) portsInUse(t *testing.T) float64 {
	return (&testEnv{t: t, registry: u.metrics}).metric("trunkline_rtp_ports_in_use")
}

// packetsReceived returns how many media packets have been received.
func (u *userAgent) packetsReceived(t *testing.T) float64 {
	return (&testEnv{t: t, registry: u.metrics}).metric("trunkline_rtp_packets_received_total")
}

func startSIP(t *testing.T, firstPort uint16, handler func(*rtp.Ports) sip.Handler) *userAgent {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	bindings, err := sip.NewRedisBindings(client, "test:")
	if err != nil {
		t.Fatal(err)
	}

	var server *sip.Server
	for range 10 { // the port that is free for UDP may not be for TCP
		server, err = sip.New(
			sip.Config{Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0",
				TrustedNetworks: loopback}, Limits: sip.Limits{MaxCalls: 100}}, nobody{}, bindings,
			prometheus.NewRegistry(), log)
		if err == nil {
			break
		}
	}

	if err != nil {
		t.Fatal(err)
	}

	metrics := prometheus.NewRegistry()
	ports, err := rtp.NewPorts(
		rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: firstPort, MaxPort: firstPort + 80}, metrics, log)
	if err != nil {
		t.Fatal(err)
	}

	if handler != nil {
		server.Handle(localcall.Prefix, handler(ports))
	}

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Run(ctx); err != nil {
			t.Errorf("sip: %v", err)
		}
	}()

	t.Cleanup(func() {
		cancel()
		<-done
	})

	return &userAgent{server, ports, metrics}
}

// sipPhone calls, sends audio, and stores the audio that it receives.
type sipPhone struct {
	leg    *sip.Leg
	port   *rtp.Port
	stream *rtp.Stream
	format sip.NegotiatedCodec

	mu      sync.Mutex
	packets [][]byte
	dtmf    rtp.DTMFReceiver
	events  uint8
	pressed []byte
}

func (p *sipPhone) Receive(packet *rtp.Packet) {
	p.mu.Lock()
	defer p.mu.Unlock()

	switch packet.PayloadType {
	case p.format.ReceiveType:
		p.packets = append(p.packets, append([]byte(nil), packet.Payload...))
	case p.events:
		if press, ended := p.dtmf.HandleEvent(packet, time.Now()); ended {
			p.pressed = append(p.pressed, press.Digit)
		}
	}
}

func (p *sipPhone) receivedPackets() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([][]byte(nil), p.packets...)
}

func (u *userAgent) call(t *testing.T, to *userAgent, user string, codecs ...sip.Codec) (*sipPhone, error) {
	t.Helper()
	return u.dial(t, to, user, func(*sip.OutgoingCall) {}, codecs...)
}

// dial calls with an INVITE that change has changed.
func (u *userAgent) dial(t *testing.T, to *userAgent, user string, change func(*sip.OutgoingCall),
	codecs ...sip.Codec) (*sipPhone, error) {
	t.Helper()
	port, err := u.ports.Open()
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(port.Close)
	local := sip.NewNegotiator(port.Addr(), codecs)
	offer := local.Offer()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	call := sip.OutgoingCall{
		Target: sip.Target{URI: fmt.Sprintf("sip:%s@%s", user, to.Addr())},
		From:   sip.Party{User: "+4930123456", Host: "127.0.0.1"}, To: sip.Party{User: user, Host: "127.0.0.1"},
		Offer: offer,
	}
	change(&call)

	leg, err := u.Dial(ctx, call)
	for unsent := (*sip.Failure)(nil); errors.As(err, &unsent) && unsent.Status == 0 && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond) // Run has not begun to read
		leg, err = u.Dial(ctx, call)
	}

	if err != nil {
		return nil, err
	}

	agreed, err := local.AcceptAnswer(offer, leg.PeerSDP())
	if err != nil {
		t.Fatal(err)
	}

	p := &sipPhone{leg: leg, port: port, format: agreed.Codecs[0], events: agreed.TelephoneEvent.ReceiveType,
		dtmf: rtp.DTMFReceiver{Clock: agreed.TelephoneEvent.Clock}}
	port.SetRemote(agreed.RemoteAddr, agreed.RemoteAddr.Addr())
	port.SetReceiver(p)
	p.stream = rtp.NewStream(port,
		rtp.Format{PayloadType: p.format.SendType, Clock: p.format.Clock, Frame: 20 * time.Millisecond,
			Events: agreed.TelephoneEvent.SendType})

	return p, nil
}

// talk sends a tone until ctx ends.
func (p *sipPhone) talk(ctx context.Context, format audio.Format) {
	encode, err := audio.NewTranscoder(audio.Format{Encoding: audio.PCM16, Rate: 48000}, format)
	if err != nil {
		panic(err)
	}

	tone, at := samples(48000, time.Second), 0
	p.stream.Run(ctx, source(func(buffer []byte) int {
		_ = encode.Decode(tone[at : at+1920])
		at = (at + 1920) % len(tone)
		packet, _ := encode.EncodeFrame(nil)
		return copy(buffer, packet)
	}))
}

type source func([]byte) int

func (s source) Next(buffer []byte) int { return s(buffer) }

// callLimits is a sipcall.Admission that closes transfers to +882.
type callLimits struct{}

func (callLimits) Admit(context.Context, sip.User, netip.Addr) (leave func(), err error) {
	return func() {}, nil
}

func (callLimits) AdmitTransfer(_ context.Context, _ sip.User, accountID, destination string) error {
	if accountID == "" || strings.HasPrefix(destination, "+882") {
		return fault.Forbidden("International numbers may not be called")
	}
	return nil
}

func sipHandler(h *testEnv) func(*rtp.Ports) sip.Handler {
	return func(ports *rtp.Ports) sip.Handler {
		return sipcall.New(sipcall.Deps{
			Sessions: h.Service, Providers: envProviders{h}, Ports: ports,
			MayCall:   func(caller, provider string) bool { return caller == "" || caller == provider },
			Log:       slog.New(slog.DiscardHandler),
			Admission: callLimits{},
		})
	}
}

func TestACallBySIP(t *testing.T) {
	for i, c := range []struct {
		name     string
		codec    sip.Codec
		format   audio.Format
		encoding string
		least    float64
	}{
		{"PCMU to g711_ulaw", sip.PCMU(), ulaw, "g711_ulaw", 30},
		{"PCMA to pcm16", sip.PCMA(), audio.Format{Encoding: audio.ALaw, Rate: 8000}, "pcm16", 30},
		{"opus to pcm16", sip.Opus(), opus, "pcm16", 8},
		{"opus to opus", sip.Opus(), opus, "opus", 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, map[string]int{"g711_ulaw": 160, "pcm16": 960}[c.encoding], echoAudio)
			p.extensions = true
			h := startService(t, aisession.DefaultSettings(), p)
			with := account(p, c.encoding)
			with.Extensions = true
			h.providers = map[string]aiprovider.Provider{"prov1": with}
			server, client := startSIP(t, uint16(20000+200*i), sipHandler(h)), startSIP(t, uint16(20100+200*i), nil)
			phone, err := client.call(t, server, "ai-prov1", c.codec)
			if err != nil {
				t.Fatal(err)
			}

			ctx, quiet := context.WithCancel(t.Context())
			talking := make(chan struct{})
			go func() {
				defer close(talking)
				phone.talk(ctx, c.format)
			}()
			defer func() { quiet(); <-talking }()

			hearsTone(t, c.format, c.least, phone.receivedPackets)
			if err := phone.stream.SendDTMF(t.Context(), '8', 180*time.Millisecond); err != nil {
				t.Fatal(err)
			}

			v := p.nextConnection()
			press := v.waitFor(t, "dtmf", 1)
			if want := fmt.Sprintf(`{"callId":%q,"otherLegCallId":"","digit":"8","duration":180}`,
				phone.leg.CallID()); string(press.body) != want {
				t.Errorf("dtmf: %s, want %s", press.body, want)
			}
			if err := v.send(`{"event":"dtmf","dtmf":{"digit":"3","duration":100}}`); err != nil {
				t.Fatal(err)
			}

			until(t, "the provider's key",
				func() bool { phone.mu.Lock(); defer phone.mu.Unlock(); return string(phone.pressed) == "3" })
			phone.leg.Hangup(sip.NormalClearing)
			messages := v.waitHangup(t, "NORMAL_CLEARING")
			presses := 0

			for _, m := range messages {
				if m.event == "dtmf" {
					presses++
				}
			}

			if presses != 1 {
				t.Errorf("a press came %d times", presses)
			}
		})
	}
}

func TestASIPCallThatIsRefused(t *testing.T) {
	for i, c := range []struct {
		name, user string
		status     int
		cfg        aisession.Settings
		refuse     int
		codec      sip.Codec
	}{
		{name: "no such provider", user: "ai-other", status: 404, codec: sip.PCMU()},
		{name: "over the node's limit", user: "ai-prov1", status: 503,
			cfg: settingsWith(func(s *aisession.Settings) { s.MaxSessions = 1 }), codec: sip.PCMU()},
		{name: "the provider is away", user: "ai-prov1", status: 503, refuse: 503, codec: sip.PCMU()},
		{name: "the provider refuses", user: "ai-prov1", status: 502, refuse: 401, codec: sip.PCMU()},
		{name: "no codec in common", user: "ai-prov1", status: 488,
			codec: sip.Codec{Name: "G729", PayloadType: 18, Clock: 8000, Channels: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 0, nil)
			p.setRefusal(c.refuse)

			if c.cfg == (aisession.Settings{}) {
				c.cfg = aisession.DefaultSettings()
			}
			if c.refuse == 503 {
				c.cfg.GiveUp = 300 * time.Millisecond
			}

			h := startService(t, c.cfg, p)
			with := account(p, "g711_ulaw")
			h.providers = map[string]aiprovider.Provider{"prov1": with}

			if c.cfg.MaxSessions == 1 { // it is taken
				session, err := h.Open(t.Context(), request(with, ulaw))
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close("")
			}

			server, client := startSIP(t, uint16(22000+200*i), sipHandler(h)), startSIP(t, uint16(22100+200*i), nil)
			_, err := client.call(t, server, c.user, c.codec)
			var failure *sip.Failure
			if !errors.As(err, &failure) || failure.Status != c.status {
				t.Errorf("the call: %v, want %d", err, c.status)
			}
		})
	}
}

func TestASIPCallEndsAsTheProviderWishes(t *testing.T) {
	for i, c := range []struct {
		name   string
		cause  sip.Cause
		behave func(*provider) func(*fakeConnection)
	}{
		{"hung up", sip.UserBusy, func(*provider) func(*fakeConnection) {
			return func(v *fakeConnection) { _ = v.send(`{"event":"hangup","hangup":{"reason":"USER_BUSY"}}`) }
		}},
		{"hung up without an object", sip.NormalClearing, func(*provider) func(*fakeConnection) {
			return func(v *fakeConnection) { _ = v.send(`{"event":"hangup"}`) }
		}},
		{"hung up with a name that is no cause", sip.NormalClearing, func(*provider) func(*fakeConnection) {
			return func(v *fakeConnection) { _ = v.send(`{"event":"hangup","hangup":{"reason":"WHATEVER"}}`) }
		}},
		{"handed back when the provider is lost", sip.NormalTemporaryFailure, func(p *provider) func(*fakeConnection) {
			return func(v *fakeConnection) { p.setRefusal(403); _ = v.NetConn().Close() }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 0, nil)
			p.behave = c.behave(p)
			h := startService(t, aisession.DefaultSettings(), p)
			with := account(p, "g711_ulaw")
			with.Extensions, with.Fallback = true, aiprovider.FallbackReturn
			h.providers = map[string]aiprovider.Provider{"prov1": with}
			server, client := startSIP(t, uint16(24000+200*i), sipHandler(h)), startSIP(t, uint16(24100+200*i), nil)
			phone, err := client.call(t, server, "ai-prov1", sip.PCMU())
			if err != nil {
				t.Fatal(err)
			}

			select {
			case <-phone.leg.Done():
			case <-time.After(patience):
				t.Fatal("the call continues")
			}

			if phone.leg.Cause() != c.cause {
				t.Errorf("ended with %s", phone.leg.Cause())
			}
		})
	}
}

// A PBX forwards a number to a provider's address: the provider receives the number.
func TestTheNumberDialledIsTold(t *testing.T) {
	header := func(name, value string, more ...string) func(*sip.OutgoingCall) {
		return func(c *sip.OutgoingCall) {
			c.Headers = append(c.Headers, sip.Header{Name: name, Value: value})
			for i := 0; i < len(more); i += 2 {
				c.Headers = append(c.Headers, sip.Header{Name: more[i], Value: more[i+1]})
			}
		}
	}

	for i, c := range []struct {
		name           string
		change         func(*sip.OutgoingCall)
		caller, callee string
	}{
		{"nothing but the provider's address", func(*sip.OutgoingCall) {}, "+4930123456", "ai-prov1"},
		{"To", func(c *sip.OutgoingCall) { c.To.User = "+49305551212" }, "+4930123456", "+49305551212"},
		{"in national form", func(c *sip.OutgoingCall) { c.To.User, c.From.User = "0305551212", "0401234567" },
			"+49401234567", "+49305551212"},
		{"an extension", func(c *sip.OutgoingCall) { c.To.User, c.From.User = "4711", "1001" }, "1001", "4711"},
		{"P-Called-Party-ID", header("P-Called-Party-ID", `<sip:0305551212@pbx.example>`), "+4930123456",
			"+49305551212"},
		{"Diversion", header("Diversion", `<sip:0305551212@pbx.example>;reason=unconditional`), "+4930123456",
			"+49305551212"},
		{"History-Info", header("History-Info", `<sip:+49305551212@pbx.example>;index=1,<sip:ai-prov1@here>;index=1.1`),
			"+4930123456", "+49305551212"},
		{"X-Dialled-Number", header("X-Dialled-Number", "+49305551212"), "+4930123456", "+49305551212"},
		{"the provider's own address before another",
			header("P-Called-Party-ID", `<sip:ai-prov1@here>`, "Diversion", `<tel:+49305551212>`), "+4930123456",
			"+49305551212"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, 160, nil)
			h := startService(t, aisession.DefaultSettings(), p)
			h.providers = map[string]aiprovider.Provider{"prov1": account(p, "g711_ulaw")}
			server, client := startSIP(t, uint16(28000+200*i), sipHandler(h)), startSIP(t, uint16(28100+200*i), nil)
			phone, err := client.dial(t, server, "ai-prov1", c.change, sip.PCMU())
			if err != nil {
				t.Fatal(err)
			}

			want := fmt.Sprintf(`"callerIdNumber":%q,"calleeIdNumber":%q`, c.caller, c.callee)
			if start := p.nextConnection().waitFor(t, "start", 1); !strings.Contains(string(start.body), want) {
				t.Errorf("start: %s, want %s", start.body, want)
			}

			phone.leg.Hangup(sip.NormalClearing)
		})
	}
}

func TestAPhoneMovesDuringTheCall(t *testing.T) {
	p := startProvider(t, 160, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	h.providers = map[string]aiprovider.Provider{"prov1": account(p, "g711_ulaw")}
	server, client := startSIP(t, 26000, sipHandler(h)), startSIP(t, 26100, nil)
	phone, err := client.call(t, server, "ai-prov1", sip.PCMU())
	if err != nil {
		t.Fatal(err)
	}

	until(t, "audio", func() bool { return len(phone.receivedPackets()) > 5 })
	port, err := client.ports.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()

	if _, err := phone.leg.Reinvite(t.Context(),
		sip.NewNegotiator(port.Addr(), []sip.Codec{sip.PCMA()}).Offer()); err == nil {
		t.Error("the codec changed during the call")
	}

	moved := &sipPhone{format: phone.format}
	port.SetReceiver(moved)
	answer, err := phone.leg.Reinvite(t.Context(),
		sip.NewNegotiator(port.Addr(), []sip.Codec{sip.PCMA(), sip.PCMU()}).Offer())
	if err != nil {
		t.Fatal(err)
	}

	port.SetRemote(answer.Address, answer.Address.Addr())
	until(t, "audio at the new port", func() bool { return len(moved.receivedPackets()) > 20 })
	phone.leg.Hangup(sip.UserBusy)
	p.nextConnection().waitHangup(t, "USER_BUSY")
}

// TestACallThatIsConnectedAlready hands a caller's media to a session, as click
// to call to a provider does.
func TestACallThatIsConnectedAlready(t *testing.T) {
	p := startProvider(t, 160, echoAudio)
	h := startService(t, aisession.DefaultSettings(), p)
	provider := account(p, "g711_ulaw")
	h.providers = map[string]aiprovider.Provider{"prov1": provider}
	ports, err := rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 31600, MaxPort: 31640},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	mine, theirs, agreed := connected(t, ports)
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

// connected is a phone, and the port that its media comes to.
func connected(t *testing.T, ports *rtp.Ports) (phone *sipPhone, far *rtp.Port, agreed sip.NegotiatedMedia) {
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

func openPort(t *testing.T, ports *rtp.Ports) *rtp.Port {
	t.Helper()
	port, err := ports.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Close)
	return port
}
