package freeswitch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const testPassword = "open sesame"

// timing is how a scripted switch writes.
type timing struct {
	name  string
	pause time.Duration       // before each event
	split bool                // a few bytes at a time
	order func([]told) []told // of a call's events
}

// scripted is a switch that plays captured sessions to whoever orders calls. It
// takes only the commands that the driver has a reason to send, in exactly
// their form, and fails the test over any other.
type scripted struct {
	t        *testing.T
	listener net.Listener
	done     sync.WaitGroup

	timing  timing
	scripts map[string]session // by destination
	refuse  string             // answer to bgapi, "" to accept
	blind   bool               // no table of channels
	domain  string             // its own
	users   []string           // that its directory has, as 1001@pbx.example
	status  string             // answer to status; "" has a limit that no test reaches

	mu         sync.Mutex
	cond       *sync.Cond
	client     net.Conn // nil while there is none
	listening  map[string]bool
	channels   map[string]row
	plays      map[string]*play // by job
	denied     int
	asked      int         // for the table of channels
	filters    int         // of the connection: two, or none
	asks       []string    // for users
	dialled    []string    // domains of owners
	times      []time.Time // of originates
	killed     []string
	originates int
	cut        func(e told) bool // whether to break the connection within this event
	mute       bool              // do not answer originates; hang up the connection instead
	hold       string            // event at whose first occurrence plays wait
	closed     bool
}

// play is one call on the scripted switch.
type play struct {
	killed   bool
	released bool
}

func newScripted(t *testing.T, s *scripted) *scripted {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.t, s.listener = t, l
	s.cond = sync.NewCond(&s.mu)
	s.channels, s.plays = make(map[string]row), make(map[string]*play)
	s.done.Go(s.accept)
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
	settings.Address, settings.Password, settings.RingUser = s.listener.Addr().String(), testPassword, time.Second
	return Config{
		Settings:     settings,
		ReconnectMin: time.Millisecond, ReconnectMax: 10 * time.Millisecond,
		AuditEvery: 20 * time.Millisecond, GoneAfter: 30 * time.Millisecond,
		CommandTimeout: 2 * time.Second,
	}
}

// vanillaStatus is what FreeSWITCH 1.10 answers to status.
func vanillaStatus(sessionsPerSecond int) string {
	return fmt.Sprintf(`UP 0 years, 0 days, 0 hours, 6 minutes, 23 seconds, 433 milliseconds, 113 microseconds
FreeSWITCH (Version 1.10.12 -release 64bit) is ready
12 session(s) since startup
2 session(s) - peak 4, last 5min 4
0 session(s) per Sec out of max %d, peak 4, last 5min 4
1000 session(s) max
min idle cpu 0.00/96.87
Current Stack Size/Max 240K/8192K
`, sessionsPerSecond)
}

func (s *scripted) accept() {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.converse(nc)
	}
}

// command reads one command: a line, its headers, an empty line.
func command(in *bufio.Reader) (line string, headers []string, err error) {
	for {
		text, err := in.ReadString('\n')
		if err != nil {
			return "", nil, err
		}
		switch text = strings.TrimSuffix(text, "\n"); {
		case text == "":
			return line, headers, nil
		case line == "":
			line = text
		default:
			headers = append(headers, text)
		}
	}
}

var (
	uuidForm      = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`
	subscribeForm = regexp.MustCompile(`^event plain ([A-Z_]+(?: [A-Z_]+)*)$`)
	userForm      = regexp.MustCompile(`^api user_exists id ([^ @{}]+) ([^ @{}]+)$`)
	existsForm    = regexp.MustCompile(`^api uuid_exists (` + uuidForm + `)$`)
	killForm      = regexp.MustCompile(`^api uuid_kill (` + uuidForm + `) ORIGINATOR_CANCEL$`)
	jobForm       = regexp.MustCompile(`^Job-UUID: (` + uuidForm + `)$`)
	originateForm = regexp.MustCompile(`^bgapi originate \{\^\^;([^{}]*)\}user/([^ {}]+)@([^ {}]+) &bridge\(\{\^\^;([^{}]*)\}loopback/([^/ (){}]+)/default/XML\)$`)
)

func (s *scripted) converse(nc net.Conn) {
	defer nc.Close()
	in := bufio.NewReader(nc)
	io.WriteString(nc, "Content-Type: auth/request\n\n")
	line, _, err := command(in)
	if err != nil {
		return
	}
	if line != "auth "+testPassword {
		s.mu.Lock()
		s.denied++
		s.mu.Unlock()
		io.WriteString(nc, "Content-Type: command/reply\nReply-Text: -ERR invalid\n\n")
		return
	}
	io.WriteString(nc, "Content-Type: command/reply\nReply-Text: +OK accepted\n\n")
	s.mu.Lock()
	s.client, s.listening, s.filters = nc, nil, 0
	s.mu.Unlock()
	for {
		line, headers, err := command(in)
		if err != nil {
			break
		}
		s.obey(nc, line, headers)
	}
	s.mu.Lock()
	s.client, s.listening = nil, nil
	s.cond.Broadcast()
	s.mu.Unlock()
}

func (s *scripted) obey(nc net.Conn, line string, headers []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := originateForm.FindStringSubmatch(line); m != nil {
		s.originate(nc, m, headers)
		return
	}
	if len(headers) > 0 {
		s.t.Errorf("%q came with headers %q", line, headers)
	}
	switch {
	case subscribeForm.MatchString(line):
		s.listening = make(map[string]bool)
		for _, name := range strings.Fields(line)[2:] {
			s.listening[name] = true
		}
		s.write(nc, "Content-Type: command/reply\nReply-Text: +OK event listener enabled plain\n\n")
	case line == "filter Channel-Presence-Data /^trunkline:/", line == "filter Job-Command originate":
		s.filters++
		s.write(nc, "Content-Type: command/reply\nReply-Text: +OK filter added.\n\n")
	case line == "api show channels like trunkline: as json" && s.blind:
		s.asked++
		s.output(nc, "-ERR Database error\n")
	case line == "api show channels like trunkline: as json":
		rows := slices.Collect(maps.Values(s.channels))
		text, err := json.Marshal(map[string]any{"row_count": len(rows), "rows": rows})
		if err != nil {
			s.t.Error(err)
		}
		s.output(nc, string(text))
	case line == "api status":
		status := s.status
		if status == "" {
			status = vanillaStatus(1_000_000)
		}
		s.output(nc, status)
	case line == "api global_getvar domain":
		s.output(nc, s.domain)
	case userForm.MatchString(line):
		m := userForm.FindStringSubmatch(line)
		user := m[1] + "@" + m[2]
		s.asks = append(s.asks, user)
		s.output(nc, fmt.Sprint(slices.Contains(s.users, user)))
	case existsForm.MatchString(line):
		_, ok := s.channels[existsForm.FindStringSubmatch(line)[1]]
		s.output(nc, fmt.Sprint(ok))
	case killForm.MatchString(line):
		s.kill(nc, killForm.FindStringSubmatch(line)[1])
	default:
		s.t.Errorf("the switch was sent %q", line)
		nc.Close()
	}
}

// write answers and tells; s.mu is held, so that no two messages mix.
func (s *scripted) write(nc net.Conn, text string) {
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

func (s *scripted) output(nc net.Conn, text string) {
	s.write(nc, fmt.Sprintf("Content-Type: api/response\nContent-Length: %d\n\n%s", len(text), text))
}

func (s *scripted) kill(nc net.Conn, channel string) {
	r, ok := s.channels[channel]
	if !ok {
		s.output(nc, "-ERR No such channel!\n")
		return
	}
	s.killed = append(s.killed, channel)
	_, job, _ := readTag(r.Tag)
	s.plays[job].killed = true
	s.cond.Broadcast()
	s.output(nc, "+OK\n")
}

// originate checks what was ordered, and starts to play it.
func (s *scripted) originate(nc net.Conn, m, headers []string) {
	s.originates++
	s.times, s.dialled = append(s.times, time.Now()), append(s.dialled, m[3])
	owner, destination := parseVariables(s.t, m[1]), parseVariables(s.t, m[4])
	if len(headers) != 1 || !jobForm.MatchString(headers[0]) {
		s.t.Errorf("originate came with headers %q", headers)
		return
	}
	job := jobForm.FindStringSubmatch(headers[0])[1]
	if s.mute {
		s.mute = false
		s.perform(m[5], job, owner, destination)
		nc.Close()
		return
	}
	if s.refuse != "" {
		s.write(nc, "Content-Type: command/reply\nReply-Text: "+s.refuse+"\n\n")
		return
	}
	s.write(nc, "Content-Type: command/reply\nReply-Text: +OK Job-UUID: "+job+"\nJob-UUID: "+job+"\n\n")
	s.perform(m[5], job, owner, destination)
}

func (s *scripted) perform(number, job string, owner, destination map[string]string) {
	script, ok := s.scripts[number]
	if !ok {
		s.t.Errorf("no script for %s", number)
		return
	}
	p := &play{}
	s.plays[job] = p
	events := script.retold(s.t, job, owner, destination)
	if s.timing.order != nil {
		events = s.timing.order(events)
	}
	s.done.Go(func() { s.play(p, events, job) })
}

func (s *scripted) play(p *play, events []told, job string) {
	held, jobTold := false, false
	for _, e := range events {
		s.mu.Lock()
		if e["Event-Name"] == s.hold && !held {
			held = true
			for !p.killed && !p.released && !s.closed {
				s.cond.Wait()
			}
		}
		stop := p.killed || s.closed
		if !stop {
			jobTold = jobTold || e["Event-Name"] == "BACKGROUND_JOB"
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
	for channel, r := range s.channels {
		if _, of, _ := readTag(r.Tag); of != job {
			continue
		}
		for _, name := range []string{"CHANNEL_HANGUP", "CHANNEL_DESTROY"} {
			s.tell(told{"Event-Name": name, "Unique-ID": channel, "Channel-Presence-Data": r.Tag,
				"Channel-Call-State": "HANGUP", "Hangup-Cause": causeCancelled})
		}
	}
	if !jobTold {
		s.tell(told{"Event-Name": "BACKGROUND_JOB", "Job-Command": "originate", "Job-UUID": job, "_body": "-ERR ORIGINATOR_CANCEL\n"})
	}
}

// tell makes an event happen: in the table, and to the client that wants it.
// s.mu is held.
func (s *scripted) tell(e told) {
	if channel := e["Unique-ID"]; channel != "" {
		_, known := s.channels[channel]
		switch name := e["Event-Name"]; {
		case name == "CHANNEL_DESTROY":
			delete(s.channels, channel)
		case known || name == "CHANNEL_CREATE":
			r := row{UUID: channel, Tag: e["Channel-Presence-Data"], State: e["Channel-Call-State"]}
			if r.Tag == "" {
				r.Tag = s.channels[channel].Tag
			}
			s.channels[channel] = r
		}
	}
	if s.client == nil || !s.listening[e["Event-Name"]] && !s.listening["ALL"] {
		return
	}
	ours := strings.HasPrefix(e["Channel-Presence-Data"], tagPrefix) || e["Job-Command"] == "originate"
	if s.filters > 0 && !ours {
		return
	}
	text := e.plain()
	if s.cut != nil && s.cut(e) {
		s.cut = nil
		io.WriteString(s.client, text[:len(text)/2])
		s.client.Close()
		s.client, s.listening = nil, nil
		return
	}
	s.write(s.client, text)
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

// await waits until the switch is as wanted.
func (s *scripted) await(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
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
