package freeswitch

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// The commands of each action, and what becomes of the switch's refusal and of ids that are
// more than one word.
func TestCommandsOfActions(t *testing.T) {
	sw := (&fakeSwitch{answers: map[string]string{}}).serve(t)

	const member, leg = "2f1a3c5e-0000-4000-8000-000000000001", "2f1a3c5e-0000-4000-8000-000000000002"
	const agentsLeg, plain = "2f1a3c5e-0000-4000-8000-000000000003", "2f1a3c5e-0000-4000-8000-000000000004"
	for command, answer := range map[string]string{
		"callcenter_config agent set status 1001@x 'On Break'":   "+OK\n",
		"callcenter_config agent set status 1009@x 'Logged Out'": "-ERR Invalid Agent!\n",
		"callcenter_config tier add sales@x 1001@x 1 1":          "+OK\n",
		"uuid_exists " + member:                                  "false",
		"callcenter_config queue list members sales@x": "queue|instance_id|uuid|session_uuid|cid_number|cid_name|state\nsales@x|single_box|" +
			member + "|" + leg + "|1|Eve|Answered\n+OK\n",
		"uuid_transfer " + leg + " 7001":                       "+OK\n",
		"uuid_exists " + agentsLeg:                             "true",
		"uuid_getvar " + agentsLeg + " cc_member_session_uuid": leg,
		"uuid_exists " + plain:                                 "true",
		"uuid_getvar " + plain + " cc_member_session_uuid":     "_undef_",
		"uuid_transfer " + plain + " 7002":                     "+OK\n",
		"uuid_kill " + leg:                                     "+OK\n",
	} {
		sw.answer(command, answer)
	}

	s, ok := openSession(t, sw.newPlatform(t, feed.Config{}, domains{})).(feed.Commander)
	if !ok {
		t.Fatal("the session takes no commands")
	}

	for name, c := range map[string]struct {
		command feed.Command
		want    fault.Kind
		sent    string
	}{
		"break": {feed.Command{Action: feed.ActionBreak, AgentID: "1001@x"}, "",
			"callcenter_config agent set status 1001@x 'On Break'"},
		"join": {feed.Command{Action: feed.ActionJoin, AgentID: "1001@x", QueueID: "sales@x"}, "",
			"callcenter_config tier add sales@x 1001@x 1 1"},
		"a refusal": {feed.Command{Action: feed.ActionLogout, AgentID: "1009@x"}, fault.KindRefused, ""},
		"a reason": {feed.Command{Action: feed.ActionBreak, AgentID: "1001@x", Reason: "lunch"},
			fault.KindConflict, ""},
		"two words": {feed.Command{Action: feed.ActionBreak, AgentID: "1001@x 'x'"}, fault.KindConflict, ""},
		"a line": {feed.Command{Action: feed.ActionHangup, CallID: "x\n\napi shutdown"},
			fault.KindConflict, ""},
		"transfer of a call": {feed.Command{Action: feed.ActionTransfer, CallID: plain, Destination: "7002"}, "",
			"uuid_transfer " + plain + " 7002"},
		"transfer of a member": {feed.Command{Action: feed.ActionTransfer, CallID: member, QueueID: "sales@x",
			Destination: "7001"}, "", "uuid_transfer " + leg + " 7001"},
		"hang up of a member": {feed.Command{Action: feed.ActionHangup, CallID: member, QueueID: "sales@x"}, "",
			"uuid_kill " + leg},
	} {
		if err := s.Command(t.Context(), c.command); fault.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.sent != "" && sw.timesReceived("api "+c.sent) != 1 {
			t.Errorf("%s: %q was asked %d times", name, c.sent, sw.timesReceived("api "+c.sent))
		}
	}

	// The agent's own leg stands for its caller's, who alone is sent on.
	if err := s.Command(t.Context(),
		feed.Command{Action: feed.ActionTransfer, CallID: agentsLeg, QueueID: "sales@x",
			Destination: "7001"}); err != nil {
		t.Error(err)
	}

	if n := sw.timesReceived("api uuid_transfer " + leg + " 7001"); n != 2 {
		t.Errorf("%d transfers of the caller", n)
	}

	sw.mu.Lock()
	defer sw.mu.Unlock()

	if slices.ContainsFunc(sw.commands, func(c string) bool { return strings.Contains(c, "shutdown") }) {
		t.Error("a line of a caller reached the switch")
	}
}

// With listen_beep both parties hear it first, and nobody listens if they cannot.
func TestListeningBeepsFirst(t *testing.T) {
	const leg = "2f1a3c5e-0000-4000-8000-000000000002"
	const beeps = "uuid_broadcast " + leg + " tone_stream://%(300,0,1400) both"
	for name, c := range map[string]struct {
		on     bool
		answer string
		want   fault.Kind
		beeps  int
		rings  bool
	}{
		"without": {false, "+OK Message sent\n", "", 0, true},
		"with":    {true, "+OK Message sent\n", "", 1, true},
		"refused": {true, "-ERR No such channel!\n", fault.KindRefused, 1, false},
	} {
		sw := (&fakeSwitch{answers: map[string]string{"uuid_exists " + leg: "true", beeps: c.answer}}).serve(t)
		s := openSession(t, sw.newPlatform(t, feed.Config{ListenBeep: c.on}, domains{})).(feed.Commander)
		err := s.Command(t.Context(),
			feed.Command{ID: "9b2f", Action: feed.ActionListen, CallID: leg, Extension: "1010", Domain: "x"})
		if fault.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}

		sw.mu.Lock()
		at := slices.Index(sw.commands, "api "+beeps)
		ring := slices.IndexFunc(sw.commands,
			func(line string) bool { return strings.HasPrefix(line, "bgapi originate {") })
		sw.mu.Unlock()

		if sw.timesReceived("api "+beeps) != c.beeps || (ring >= 0) != c.rings || ring >= 0 && at > ring {
			t.Errorf("%s: %q", name, sw.commands)
		}
	}
}

// Each phone of the extension rings, with a leg of its own: two legs with one uuid are one on FreeSWITCH 1.11.1,
// which drops the second as a duplicate. The interaction is the action's, in a snapshot too.
func TestEveryPhoneOfTheListenerRings(t *testing.T) {
	const leg = "2f1a3c5e-0000-4000-8000-000000000002"
	sw := (&fakeSwitch{answers: map[string]string{"uuid_exists " + leg: "true"}}).serve(t)
	s := openSession(t, sw.newPlatform(t, feed.Config{}, domains{})).(feed.Commander)
	if err := s.Command(t.Context(),
		feed.Command{ID: "9b2f", Action: feed.ActionListen, CallID: leg, Extension: "1010", Domain: "x"}); err != nil {
		t.Fatal(err)
	}

	sw.mu.Lock()
	defer sw.mu.Unlock()

	ring := slices.IndexFunc(sw.commands,
		func(line string) bool { return strings.HasPrefix(line, "bgapi originate {") })
	if ring < 0 || strings.Contains(sw.commands[ring], "uuid=") ||
		!strings.Contains(sw.commands[ring], "{interaction_id=9b2f,presence_data=trunkline-listener:9b2f,") {
		t.Errorf("%q", sw.commands)
	}

	row := channelRow{UUID: "phone", Direction: "outbound", CallUUID: "phone", CallState: "ACTIVE",
		PresenceData: "trunkline-listener:9b2f"}
	if got := row.facts().InteractionID; got != "9b2f" {
		t.Errorf("in a snapshot its interaction is %q", got)
	}
}

// Of the caller's leg, which is listened to, key 1 of eavesdrop speaks to its other leg, the agent, and 2 to itself:
// heard by tones on FreeSWITCH 1.11.1.
func TestWhoHearsTheListener(t *testing.T) {
	const leg = "2f1a3c5e-0000-4000-8000-000000000002"
	for action, want := range map[feed.Action]string{feed.ActionListen: "'eavesdrop:" + leg + "' inline",
		feed.ActionWhisper: "'queue_dtmf:w1@500,eavesdrop:" + leg + "' inline",
		feed.ActionBarge:   "'queue_dtmf:w3@500,eavesdrop:" + leg + "' inline"} {
		sw := (&fakeSwitch{answers: map[string]string{"uuid_exists " + leg: "true"}}).serve(t)
		s := openSession(t, sw.newPlatform(t, feed.Config{}, domains{})).(feed.Commander)
		err := s.Command(t.Context(),
			feed.Command{ID: "9b2f", Action: action, CallID: leg, Extension: "1010", Domain: "x"})
		sw.mu.Lock()
		rings := slices.ContainsFunc(sw.commands, func(line string) bool { return strings.Contains(line, want) })
		sw.mu.Unlock()

		if err != nil || !rings {
			t.Errorf("%s: %v, %q, want %q", action, err, sw.commands, want)
		}
	}
}

// The phone that listens is a user of the switch, whose domain need not be the account's.
func TestTheDomainOfThePhoneThatListens(t *testing.T) {
	const leg = "2f1a3c5e-0000-4000-8000-000000000002"
	for name, c := range map[string]struct {
		exists []string // domains
		agent  string
		want   string // dial string, "": refused
	}{
		"the account's": {[]string{"acme.example", "pbx.example.com"}, "1003@pbx.example.com",
			"user/1010@acme.example"},
		"the agent's": {[]string{"pbx.example.com", "192.0.2.5"}, "1003@pbx.example.com",
			"user/1010@pbx.example.com"},
		"the switch's":            {[]string{"192.0.2.5"}, "1003@default", "user/1010@192.0.2.5"},
		"none has such an user":   {nil, "1003@default", ""},
		"a switch that says none": {[]string{"-"}, "1003@default", "user/1010@acme.example"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{"uuid_exists " + leg: "true", "global_getvar domain": "192.0.2.5\n"}
			for _, domain := range []string{"acme.example", "pbx.example.com", "192.0.2.5", "default"} {
				if !slices.Contains(c.exists, "-") {
					answers["user_exists id 1010 "+domain] = strconv.FormatBool(slices.Contains(c.exists, domain)) +
						"\n"
				}
			}

			sw := (&fakeSwitch{answers: answers}).serve(t)
			s := openSession(t, sw.newPlatform(t, feed.Config{}, domains{})).(feed.Commander)
			err := s.Command(t.Context(),
				feed.Command{ID: "9b2f", Action: feed.ActionListen, CallID: leg, AgentID: c.agent, Extension: "1010",
					Domain: "acme.example"})
			if (c.want == "") != (fault.KindOf(err) == fault.KindRefused) {
				t.Errorf("%v", err)
			}

			sw.mu.Lock()
			defer sw.mu.Unlock()

			rings := slices.IndexFunc(sw.commands,
				func(line string) bool { return strings.HasPrefix(line, "bgapi originate {") })
			if (rings >= 0) != (c.want != "") || rings >= 0 && !strings.Contains(sw.commands[rings], "}"+c.want+" ") {
				t.Errorf("%q", sw.commands)
			}
		})
	}
}
