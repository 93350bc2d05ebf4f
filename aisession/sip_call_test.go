package aisession_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/telephony/audio"
	"trunkline/telephony/sip"
)

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
			with := configOf(p, c.encoding)
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
			with := configOf(p, "g711_ulaw")
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
			with := configOf(p, "g711_ulaw")
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
			h.providers = map[string]aiprovider.Provider{"prov1": configOf(p, "g711_ulaw")}
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
	h.providers = map[string]aiprovider.Provider{"prov1": configOf(p, "g711_ulaw")}
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
