package asterisk

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testUser   = "trunkline"
	testSecret = "open sesame"
)

// line is one "Key: Value" of a packet.
type line struct{ key, value string }

// packet is an event that a scripted Asterisk sends.
type packet []line

func (p packet) get(key string) string {
	for _, l := range p {
		if l.key == key {
			return l.value
		}
	}
	return ""
}

func (p packet) text() string {
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

// of returns the packets of a script with the ids of a call.
func of(script []packet, callID string) []packet {
	var told []packet
	for _, p := range script {
		mine := make(packet, len(p))
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

// captured returns the events of a captured connection between the response to Originate and the end.
func captured(t *testing.T, file string) []packet {
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
	var script []packet
	for block := range strings.SplitSeq(strings.TrimSpace(rest), "\r\n\r\n") {
		var p packet
		for text := range strings.SplitSeq(block, "\r\n") {
			key, value, _ := strings.Cut(text, ": ")
			p = append(p, line{strings.TrimSuffix(key, ":"), value})
		}
		script = append(script, p)
	}
	return script
}

// timing is how a scripted Asterisk writes.
type timing struct {
	name  string
	pause time.Duration // before each event
	split bool          // a few bytes at a time
}

func timings() []timing {
	return []timing{{name: "at once"}, {name: "a few bytes at a time", split: true}, {name: "slowly", pause: time.Millisecond}}
}

// scripted is an Asterisk that plays scripts to whoever originates calls. It takes only the actions
// that the driver has a reason to send, and fails the test over any other.
type scripted struct {
	t        *testing.T
	listener net.Listener
	done     sync.WaitGroup

	timing   timing
	scripts  map[string][]packet // by destination
	refuse   string              // Message of the error to Originate; "" accepts
	noFilter bool                // the user has no write privilege system
	noList   bool                // nor reporting

	mu         sync.Mutex
	cond       *sync.Cond
	client     net.Conn          // nil while there is none
	channels   map[string]packet // rows of CoreShowChannels, by unique id
	plays      map[string]*play  // by call
	denied     int
	filters    int // of the connection
	listed     int
	originates []packet
	killed     []string
	cut        func(packet) bool // whether to break the connection within this event
	mute       bool              // do not answer an Originate; break the connection instead
	hold       string            // event at whose first occurrence plays wait
	closed     bool
}

// play is one call on the scripted Asterisk.
type play struct{ killed, released bool }

func newScripted(t *testing.T, s *scripted) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.t, s.listener = t, l
	s.cond = sync.NewCond(&s.mu)
	s.channels, s.plays = make(map[string]packet), make(map[string]*play)
	s.done.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.converse(nc)
		}
	})
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.cond.Broadcast()
		if s.client != nil {
			s.client.Close()
		}
		s.mu.Unlock()
		l.Close()
		s.done.Wait()
	})
	return s
}

func (s *scripted) config() Config {
	settings := DefaultSettings()
	settings.Address, settings.Username, settings.Secret = s.listener.Addr().String(), testUser, testSecret
	settings.RingUser = time.Second
	return Config{
		Settings: settings, ReconnectMin: time.Millisecond, ReconnectMax: 10 * time.Millisecond,
		AuditEvery: 20 * time.Millisecond, GoneAfter: 30 * time.Millisecond, ActionTimeout: 10 * time.Second,
	}
}

// action reads one action.
func action(in *bufio.Reader) (packet, error) {
	var p packet
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if text = strings.TrimRight(text, "\r\n"); text == "" {
			return p, nil
		}
		key, value, _ := strings.Cut(text, ": ")
		p = append(p, line{key, value})
	}
}

func (s *scripted) converse(nc net.Conn) {
	defer nc.Close()
	in := bufio.NewReader(nc)
	io.WriteString(nc, "Asterisk Call Manager/13.0.0\r\n")
	login, err := action(in)
	if err != nil {
		return
	}
	if login.get("Username") != testUser || login.get("Secret") != testSecret {
		s.mu.Lock()
		s.denied++
		s.mu.Unlock()
		s.write(nc, fail(login, "Authentication failed"))
		return
	}
	if got := login.get("Events"); got != "call" {
		s.t.Errorf("the login asks for events %q", got)
	}
	s.write(nc, succeed(login, "Authentication accepted"))
	s.mu.Lock()
	s.client, s.filters = nc, 0
	s.mu.Unlock()
	for {
		a, err := action(in)
		if err != nil {
			break
		}
		s.obey(nc, a)
	}
	s.mu.Lock()
	if s.client == nc {
		s.client = nil
	}
	s.mu.Unlock()
}

func succeed(a packet, message string) packet {
	return packet{{"Response", "Success"}, {"ActionID", a.get("ActionID")}, {"Message", message}}
}

func fail(a packet, message string) packet {
	return packet{{"Response", "Error"}, {"ActionID", a.get("ActionID")}, {"Message", message}}
}

func (s *scripted) obey(nc net.Conn, a packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch name := a.get("Action"); {
	case name == "Ping":
		s.write(nc, succeed(a, "Pong"))
	case name == "Filter" && s.noFilter, name == "CoreShowChannels" && s.noList:
		s.write(nc, fail(a, "Permission denied"))
	case name == "Filter":
		s.filters++
		s.write(nc, succeed(a, "Filter added"))
	case name == "CoreShowChannels":
		s.listed++
		s.write(nc, packet{{"Response", "Success"}, {"ActionID", a.get("ActionID")}, {"EventList", "start"}, {"Message", "Channels will follow"}})
		for _, row := range s.channels {
			s.write(nc, append(packet{{"Event", "CoreShowChannel"}, {"ActionID", a.get("ActionID")}}, row...))
		}
		s.write(nc, packet{{"Event", "CoreShowChannelsComplete"}, {"ActionID", a.get("ActionID")}, {"EventList", "Complete"}, {"ListItems", fmt.Sprint(len(s.channels))}})
	case name == "Hangup":
		s.kill(nc, a)
	case name == "Originate":
		s.originate(nc, a)
	default:
		s.t.Errorf("Asterisk was sent %q", a)
		nc.Close()
	}
}

// write sends a packet. s.mu is held, except before the login, so that no two packets mix.
func (s *scripted) write(nc net.Conn, p packet) {
	text := p.text()
	if !s.timing.split {
		io.WriteString(nc, text)
		return
	}
	for len(text) > 0 {
		n := min(1+rand.IntN(40), len(text))
		io.WriteString(nc, text[:n])
		text = text[n:]
	}
}

func (s *scripted) kill(nc net.Conn, a packet) {
	owner := a.get("Channel")
	p := s.plays[strings.TrimSuffix(owner, ownerSuffix)]
	if s.channels[owner] == nil || p == nil {
		s.write(nc, fail(a, "No such channel"))
		return
	}
	s.killed = append(s.killed, owner)
	p.killed = true
	s.cond.Broadcast()
	s.write(nc, succeed(a, "Channel Hungup"))
}

func (s *scripted) originate(nc net.Conn, a packet) {
	s.originates = append(s.originates, a)
	id := strings.TrimSuffix(a.get("ChannelId"), ownerSuffix)
	mute := s.mute
	s.mute = false
	switch {
	case mute:
		s.perform(id, a)
		nc.Close()
		s.client = nil
	case s.refuse != "":
		s.write(nc, fail(a, s.refuse))
	default:
		s.write(nc, succeed(a, "Originate successfully queued"))
		s.perform(id, a)
	}
}

func (s *scripted) perform(id string, a packet) {
	number, _, _ := strings.Cut(strings.TrimPrefix(a.get("Data"), "Local/"), "@")
	script, ok := s.scripts[number]
	if !ok {
		s.t.Errorf("no script for %s", number)
		return
	}
	p := &play{}
	s.plays[id] = p
	events := of(script, id)
	s.done.Go(func() { s.play(p, events, id) })
}

func (s *scripted) play(p *play, events []packet, id string) {
	held, responded := false, false
	for _, e := range events {
		s.mu.Lock()
		if e.get("Event") == s.hold && !held {
			held = true
			for !p.killed && !p.released && !s.closed {
				s.cond.Wait()
			}
		}
		stop := p.killed || s.closed
		if !stop {
			responded = responded || e.get("Event") == "OriginateResponse"
			s.tell(e)
		}
		s.mu.Unlock()
		if stop {
			break
		}
		if s.timing.pause > 0 {
			time.Sleep(s.timing.pause)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !p.killed || s.closed {
		return
	}
	for _, row := range maps.Clone(s.channels) {
		if row.get("Linkedid") == ownerChannel(id) {
			s.tell(event("Hangup", "Uniqueid", row.get("Uniqueid"), "Linkedid", ownerChannel(id), "ChannelState", row.get("ChannelState"), "Cause", "16"))
		}
	}
	if !responded {
		s.tell(packet{{"Event", "OriginateResponse"}, {"ActionID", id + originateSuffix}, {"Response", "Failure"}, {"Reason", "0"}, {"Uniqueid", ownerChannel(id)}})
	}
}

// tell makes an event happen: in the table, and to the client. s.mu is held.
func (s *scripted) tell(e packet) {
	channel := e.get("Uniqueid")
	switch e.get("Event") {
	case "Hangup":
		delete(s.channels, channel)
	case "Newchannel":
		s.channels[channel] = packet{{"Uniqueid", channel}, {"Linkedid", e.get("Linkedid")}, {"ChannelState", e.get("ChannelState")}}
	case "Newstate", "DialBegin", "BridgeEnter":
		if row := s.channels[channel]; row != nil {
			row = packet{row[0], row[1], {"ChannelState", e.get("ChannelState")}}
			if e.get("Event") != "Newstate" {
				row = append(row, line{"Application", "Dial"}, line{"BridgeId", e.get("BridgeUniqueid")})
			}
			s.channels[channel] = row
		}
	}
	if s.client == nil {
		return
	}
	if s.filters > 0 && !strings.Contains(e.text(), ownerSuffix) && !strings.Contains(e.text(), originateSuffix) {
		return
	}
	if s.cut != nil && s.cut(e) {
		s.cut = nil
		text := e.text()
		io.WriteString(s.client, text[:len(text)/2])
		s.client.Close()
		s.client = nil
		return
	}
	s.write(s.client, e)
}

// release lets the plays that wait go on.
func (s *scripted) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plays {
		p.released = true
	}
	s.cond.Broadcast()
}

// await waits until Asterisk is as wanted.
func (s *scripted) await(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		ok := holds()
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("never: %s", what)
		}
	}
}
