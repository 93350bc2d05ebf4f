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

	"trunkline/aisession/sipcall"
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
			TelephoneEventType: agreed.TelephoneEvent.SendType})

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

func openPort(t *testing.T, ports *rtp.Ports) *rtp.Port {
	t.Helper()
	port, err := ports.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Close)
	return port
}
