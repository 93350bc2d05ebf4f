package pbx_test

import (
	"net/netip"
	"testing"

	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/sip/siptest"
)

func TestTrunk(t *testing.T) {
	trunk := siptest.NewPhone(t, "127.0.0.1:9", "trunk", "127.0.0.1", "")
	w := newTestEnv(t, func(c *pbx.Config) {
		c.Trunk = pbx.Trunk{Address: trunk.Addr(), Transport: "udp", Username: "us", Password: "secret",
			CallerID: "+4930", StripPrefix: "0"}
	}, nil)

	trunk.SetServer(w.server.Addr().String())
	trunk.OnCall(func(c *siptest.Call) {
		if c.Invite.GetHeader("Proxy-Authorization") == nil {
			c.ReplyWith(c.Invite, 407, "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n", "")
			return
		}
		c.Accept()
	})

	w.phone("1001")
	w.originate("0891234")
	w.awaitState(origination.Bridged)
	trunk.WaitCall()
	call := trunk.WaitCall()
	if uri := call.Invite.Recipient; uri.User != "891234" || call.Invite.From().Address.User != "+4930" {
		t.Errorf("dialled %s from %s", uri.User, call.Invite.From().Address.User)
	}

	w.stop()
	if bye := call.WaitBye(); bye == nil {
		t.Error("no BYE")
	}

	_, _, destination := w.callRecords()
	if len(destination) != 1 || destination[0].To != "0891234" || destination[0].From != "+4930" ||
		destination[0].PresenceID != "" {
		t.Errorf("records: %+v", destination)
	}
}

func TestPhonesDialByTheTrunkWhatTheirAccountMay(t *testing.T) {
	trunk := siptest.NewPhone(t, "127.0.0.1:9", "trunk", "127.0.0.1", "")
	rules, err := origination.ParseRules(origination.RuleTexts{AccountAllow: []string{account + "=^110$"}})
	must(t, err)
	w := newLimitedTestEnv(t, origination.AdmissionConfig{Rules: rules},
		func(c *pbx.Config) { c.Trunk.Address = trunk.Addr() }, nil)
	trunk.SetServer(w.server.Addr().String())
	a := w.phone("1001")
	if got := a.Dial("0900666", a.Media().SDP("sendrecv", 0)).Answer.StatusCode; got != 403 {
		t.Errorf("a number that is denied: answered %d", got)
	}
	if got := a.Dial("110", a.Media().SDP("sendrecv", 0)).Answer.StatusCode; got != 200 {
		t.Errorf("one that is allowed: answered %d", got)
	}

	if call := trunk.WaitCall(); call.Invite.Recipient.User != "110" {
		t.Errorf("the trunk was asked for %s", call.Invite.Recipient.User)
	}
}

func TestTrustedNetworkCallsUsersOnly(t *testing.T) {
	w := newTestEnvAt(t, "127.0.0.1:0", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	b := w.phone("1002")
	pbx := siptest.NewPhone(t, w.server.Addr().String(), "4930", domain, "")
	if r := pbx.Dial("0891234", pbx.Media().SDP("sendrecv", 0)).Answer; r.StatusCode != 404 {
		t.Errorf("a number outside got %d", r.StatusCode)
	}

	call := pbx.Dial("1002", pbx.Media().SDP("sendrecv", 0))
	if call.Answer.StatusCode != 200 {
		t.Fatalf("a user got %d", call.Answer.StatusCode)
	}

	bob := b.WaitCall()
	bob.WaitAck()
	call.Bye()
	bob.WaitBye()

	eventually(t, func() bool {
		w.records.mu.Lock()
		defer w.records.mu.Unlock()
		return len(w.records.rows) == 2 && w.records.rows[0].AccountID == account
	})
}
