package asterisk

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"trunkline/origination/drivertest"
)

const (
	testUser   = "trunkline"
	testSecret = "open sesame"
)

// line is one "Key: Value" of a message.
type line struct{ key, value string }

// amiMessage is an event that a scripted Asterisk sends.
type amiMessage []line

func (p amiMessage) get(key string) string {
	for _, l := range p {
		if l.key == key {
			return l.value
		}
	}
	return ""
}

func (p amiMessage) text() string {
	var b strings.Builder
	for _, l := range p {
		b.WriteString(l.key + ": " + l.value + "\r\n")
	}
	return b.String() + "\r\n"
}

// Names of ids in scripts, which a call's own replace.
const (
	capturedCall   = "0d3f5c1e-6b0a-4f8e-9c57-7a1100000018"
	capturedAction = "a2"
)

// withIDsOf returns the messages of a script with the ids of a call.
func withIDsOf(script []amiMessage, callID string) []amiMessage {
	var told []amiMessage
	for _, p := range script {
		mine := make(amiMessage, len(p))
		for i, l := range p {
			if l.key == "ActionID" && l.value == capturedAction {
				l.value = callID + originateSuffix
			}
			l.value = strings.ReplaceAll(l.value, capturedCall, callID)
			mine[i] = l
		}

		told = append(told, mine)
	}

	return told
}

// loadCaptured returns the events of a captured connection between the response to Originate and the end.
func loadCaptured(t *testing.T, file string) []amiMessage {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}

	_, rest, _ := strings.Cut(string(text), "Message: Originate successfully queued\r\n\r\n")
	rest, _, ok := strings.Cut(rest, "Response: Goodbye")
	if !ok {
		t.Fatal("the capture has no end")
	}

	var script []amiMessage
	for block := range strings.SplitSeq(strings.TrimSpace(rest), "\r\n\r\n") {
		var p amiMessage
		for text := range strings.SplitSeq(block, "\r\n") {
			key, value, _ := strings.Cut(text, ": ")
			p = append(p, line{strings.TrimSuffix(key, ":"), value})
		}
		script = append(script, p)
	}

	return script
}

// scriptedAsterisk is an Asterisk that sends scripts to a client that originates calls. It accepts only the
// driver's actions, and fails the test for any other.
type scriptedAsterisk struct {
	*drivertest.ScriptedPlatform
	scripts  map[string][]amiMessage // by destination
	noFilter bool                    // the user has no write privilege system
	noList   bool                    // nor reporting

	channels map[string]amiMessage // rows of CoreShowChannels, by unique id
	filters  int                   // of the connection
}

func newScripted(t *testing.T, s *scriptedAsterisk) *scriptedAsterisk {
	t.Helper()
	if s.ScriptedPlatform == nil {
		s.ScriptedPlatform = &drivertest.ScriptedPlatform{}
	}
	s.scripts, s.channels = scripts(t), make(map[string]amiMessage)
	s.CountChannels = func() int { return len(s.channels) }
	s.ForgetChannels = func() { clear(s.channels) }
	s.Start(t, s.converse)
	return s
}

func (s *scriptedAsterisk) driverConfig() Config {
	settings := DefaultSettings()
	settings.Address, settings.Username, settings.Secret = s.Address, testUser, testSecret
	settings.RingUser = time.Second
	return Config{Settings: settings, Limits: drivertest.Limits(), ActionTimeout: 2 * time.Minute}
}

// action reads one action.
func action(in *bufio.Reader) (amiMessage, error) {
	var p amiMessage
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}

		text = strings.TrimRight(text, "\r\n")
		if text == "" {
			return p, nil
		}

		key, value, _ := strings.Cut(text, ": ")
		p = append(p, line{key, value})
	}
}

func (s *scriptedAsterisk) converse(nc net.Conn) {
	in := bufio.NewReader(nc)
	io.WriteString(nc, "Asterisk Call Manager/13.0.0\r\n")
	login, err := action(in)
	if err != nil {
		return
	}

	if login.get("Username") != testUser || login.get("Secret") != testSecret {
		s.Mu.Lock()
		s.Denied++
		s.Mu.Unlock()
		s.write(nc, fail(login, "Authentication failed"))
		return
	}

	if got := login.get("Events"); got != "call" {
		s.T.Errorf("the login asks for events %q", got)
	}

	s.write(nc, succeed(login, "Authentication accepted"))
	s.Mu.Lock()
	s.Client, s.filters = nc, 0
	s.Mu.Unlock()

	for {
		a, err := action(in)
		if err != nil {
			return
		}
		s.obey(nc, a)
	}
}

func succeed(a amiMessage, message string) amiMessage {
	return amiMessage{{"Response", "Success"}, {"ActionID", a.get("ActionID")}, {"Message", message}}
}

func fail(a amiMessage, message string) amiMessage {
	return amiMessage{{"Response", "Error"}, {"ActionID", a.get("ActionID")}, {"Message", message}}
}

func (s *scriptedAsterisk) obey(nc net.Conn, a amiMessage) {
	s.Mu.Lock()
	defer s.Mu.Unlock()

	switch name := a.get("Action"); {
	case name == "Ping":
		s.write(nc, succeed(a, "Pong"))
	case name == "Filter" && s.noFilter, name == "CoreShowChannels" && s.noList:
		s.write(nc, fail(a, "Permission denied"))
	case name == "Filter":
		s.filters++
		s.write(nc, succeed(a, "Filter added"))
	case name == "CoreShowChannels":
		s.write(nc, amiMessage{{"Response", "Success"}, {"ActionID", a.get("ActionID")}, {"EventList", "start"},
			{"Message", "Channels will follow"}})
		for _, row := range s.channels {
			s.write(nc, append(amiMessage{{"Event", "CoreShowChannel"}, {"ActionID", a.get("ActionID")}}, row...))
		}

		s.write(nc, amiMessage{{"Event", "CoreShowChannelsComplete"}, {"ActionID", a.get("ActionID")},
			{"EventList", "Complete"}, {"ListItems", fmt.Sprint(len(s.channels))}})
	case name == "Hangup":
		s.kill(nc, a)
	case name == "Originate":
		s.originate(nc, a)
	default:
		s.T.Errorf("Asterisk was sent %q", a)
		nc.Close()
	}
}

func (s *scriptedAsterisk) write(nc net.Conn, p amiMessage) { s.Write(nc, p.text()) }

func (s *scriptedAsterisk) kill(nc net.Conn, a amiMessage) {
	owner := a.get("Channel")
	if s.channels[owner] == nil || !s.Kill(strings.TrimSuffix(owner, ownerSuffix), owner) {
		s.write(nc, fail(a, "No such channel"))
		return
	}
	s.write(nc, succeed(a, "Channel Hungup"))
}

func (s *scriptedAsterisk) originate(nc net.Conn, a amiMessage) {
	id := strings.TrimSuffix(a.get("ChannelId"), ownerSuffix)
	mute := s.DropOrder
	s.DropOrder = false

	switch {
	case mute:
		s.perform(id, a)
		nc.Close()
		s.Client = nil
	case s.Refuse != "":
		s.write(nc, fail(a, s.Refuse))
	default:
		s.write(nc, succeed(a, "Originate successfully queued"))
		s.perform(id, a)
	}
}

func (s *scriptedAsterisk) perform(id string, a amiMessage) {
	number, _, _ := strings.Cut(strings.TrimPrefix(a.get("Data"), "Local/"), "@")
	script, ok := s.scripts[number]
	if !ok {
		s.T.Errorf("no script for %s", number)
		return
	}

	responded := false
	send := func(e amiMessage) {
		responded = responded || e.get("Event") == "OriginateResponse"
		s.applyAndSend(e)
	}

	drivertest.Play(s.ScriptedPlatform, id, withIDsOf(script, id), eventName, send, func() {
		for _, row := range maps.Clone(s.channels) {
			if row.get("Linkedid") == ownerChannel(id) {
				s.applyAndSend(event("Hangup", "Uniqueid", row.get("Uniqueid"), "Linkedid", ownerChannel(id),
					"ChannelState", row.get("ChannelState"), "Cause", "16"))
			}
		}

		if !responded {
			s.applyAndSend(amiMessage{{"Event", "OriginateResponse"}, {"ActionID", id + originateSuffix},
				{"Response", "Failure"}, {"Reason", "0"}, {"Uniqueid", ownerChannel(id)}})
		}
	})
}

func eventName(e amiMessage) string { return e.get("Event") }

// applyAndSend applies an event to the table and sends it to the client. s.Mu is held.
func (s *scriptedAsterisk) applyAndSend(e amiMessage) {
	channel := e.get("Uniqueid")
	switch e.get("Event") {
	case "Hangup":
		delete(s.channels, channel)
	case "Newchannel":
		s.channels[channel] = amiMessage{{"Uniqueid", channel}, {"Linkedid", e.get("Linkedid")},
			{"ChannelState", e.get("ChannelState")}}
	case "Newstate", "DialBegin", "BridgeEnter":
		if row := s.channels[channel]; row != nil {
			row = amiMessage{row[0], row[1], {"ChannelState", e.get("ChannelState")}}
			if e.get("Event") != "Newstate" {
				row = append(row, line{"Application", "Dial"}, line{"BridgeId", e.get("BridgeUniqueid")})
			}
			s.channels[channel] = row
		}
	}

	if s.filters > 0 && !strings.Contains(e.text(), ownerSuffix) && !strings.Contains(e.text(), originateSuffix) {
		return
	}

	s.Send(eventName(e), e.text())
}
