package freeswitch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/origination"
	"trunkline/origination/drivertest"
)

const testPassword = "open sesame"

// scriptedSwitch is a switch that sends captured sessions to a client that originates calls. It accepts only
// the driver's commands, in exactly their form, and fails the test for any other.
type scriptedSwitch struct {
	*drivertest.ScriptedPlatform
	scripts       map[string]capturedCall               // by destination
	order         func([]capturedEvent) []capturedEvent // of a call's events
	hidesChannels bool                                  // no table of channels
	domain        string                                // its own
	users         []string                              // that its directory has, as 1001@pbx.example
	status        string                                // answer to status; "" has a limit that no test reaches

	listening    map[string]bool
	channels     map[string]channelRow
	tableQueries int         // for the table of channels
	filters      int         // of the connection: two, or none
	userQueries  []string    // for users
	ownerDomains []string    // domains of owners
	originatedAt []time.Time // of originates
}

func newScripted(t *testing.T, s *scriptedSwitch) *scriptedSwitch {
	t.Helper()
	if s.ScriptedPlatform == nil {
		s.ScriptedPlatform = &drivertest.ScriptedPlatform{}
	}
	if s.scripts == nil {
		s.scripts = loadCapturedCalls(t)
	}

	s.channels = make(map[string]channelRow)
	s.CountChannels = func() int { return len(s.channels) }
	s.ForgetChannels = func() { clear(s.channels) }
	s.Start(t, s.converse)

	return s
}

func (s *scriptedSwitch) driverConfig() Config {
	settings := DefaultSettings()
	settings.Address, settings.Password, settings.RingUser = s.Address, testPassword, time.Second
	return Config{Settings: settings, Limits: drivertest.Limits(), CommandTimeout: 2 * time.Minute}
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
	originateForm = regexp.MustCompile(
		`^bgapi originate \{\^\^;([^{}]*)\}user/([^ {}]+)@([^ {}]+) &bridge\(\{\^\^;([^{}]*)\}loopback/([^/ (){}]+)/default/XML\)$`)
)

func (s *scriptedSwitch) converse(nc net.Conn) {
	in := bufio.NewReader(nc)
	io.WriteString(nc, "Content-Type: auth/request\n\n")
	line, _, err := command(in)
	if err != nil {
		return
	}

	if line != "auth "+testPassword {
		s.Mu.Lock()
		s.Denied++
		s.Mu.Unlock()
		io.WriteString(nc, "Content-Type: command/reply\nReply-Text: -ERR invalid\n\n")
		return
	}

	io.WriteString(nc, "Content-Type: command/reply\nReply-Text: +OK accepted\n\n")
	s.Mu.Lock()
	s.Client, s.listening, s.filters = nc, nil, 0
	s.Mu.Unlock()

	for {
		line, headers, err := command(in)
		if err != nil {
			return
		}
		s.obey(nc, line, headers)
	}
}

func (s *scriptedSwitch) obey(nc net.Conn, line string, headers []string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()

	if m := originateForm.FindStringSubmatch(line); m != nil {
		s.originate(nc, m, headers)
		return
	}
	if len(headers) > 0 {
		s.T.Errorf("%q came with headers %q", line, headers)
	}

	switch {
	case subscribeForm.MatchString(line):
		s.listening = make(map[string]bool)
		for _, name := range strings.Fields(line)[2:] {
			s.listening[name] = true
		}
		s.Write(nc, "Content-Type: command/reply\nReply-Text: +OK event listener enabled plain\n\n")
	case line == "filter Channel-Presence-Data /^trunkline:/", line == "filter Job-Command originate":
		s.filters++
		s.Write(nc, "Content-Type: command/reply\nReply-Text: +OK filter added.\n\n")
	case line == "api show channels like trunkline: as json" && s.hidesChannels:
		s.tableQueries++
		s.output(nc, "-ERR Database error\n")
	case line == "api show channels like trunkline: as json":
		rows := slices.Collect(maps.Values(s.channels))
		text, err := json.Marshal(map[string]any{"row_count": len(rows), "rows": rows})
		if err != nil {
			s.T.Error(err)
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
		s.userQueries = append(s.userQueries, user)
		s.output(nc, fmt.Sprint(slices.Contains(s.users, user)))
	case existsForm.MatchString(line):
		_, ok := s.channels[existsForm.FindStringSubmatch(line)[1]]
		s.output(nc, fmt.Sprint(ok))
	case killForm.MatchString(line):
		s.kill(nc, killForm.FindStringSubmatch(line)[1])
	default:
		s.T.Errorf("the switch was sent %q", line)
		nc.Close()
	}
}

func (s *scriptedSwitch) output(nc net.Conn, text string) {
	s.Write(nc, fmt.Sprintf("Content-Type: api/response\nContent-Length: %d\n\n%s", len(text), text))
}

func (s *scriptedSwitch) kill(nc net.Conn, channel string) {
	r, ok := s.channels[channel]
	if !ok {
		s.output(nc, "-ERR No such channel!\n")
		return
	}
	_, job, _ := readTag(r.Tag)
	s.Kill(job, channel)
	s.output(nc, "+OK\n")
}

// originate checks the order and starts sending its events.
func (s *scriptedSwitch) originate(nc net.Conn, m, headers []string) {
	s.originatedAt, s.ownerDomains = append(s.originatedAt, time.Now()), append(s.ownerDomains, m[3])
	owner, destination := parseVariables(s.T, m[1]), parseVariables(s.T, m[4])
	if len(headers) != 1 || !jobForm.MatchString(headers[0]) {
		s.T.Errorf("originate came with headers %q", headers)
		return
	}

	job := jobForm.FindStringSubmatch(headers[0])[1]
	if s.DropOrder {
		s.DropOrder = false
		s.perform(m[5], job, owner, destination)
		nc.Close()
		return
	}

	if s.Refuse != "" {
		s.Write(nc, "Content-Type: command/reply\nReply-Text: "+s.Refuse+"\n\n")
		return
	}

	s.Write(nc, "Content-Type: command/reply\nReply-Text: +OK Job-UUID: "+job+"\nJob-UUID: "+job+"\n\n")
	s.perform(m[5], job, owner, destination)
}

func (s *scriptedSwitch) perform(number, job string, owner, destination map[string]string) {
	script, ok := s.scripts[number]
	if !ok {
		s.T.Errorf("no script for %s", number)
		return
	}

	events := script.withOrder(s.T, job, owner, destination)
	if s.order != nil {
		events = s.order(events)
	}

	jobTold := false
	send := func(e capturedEvent) {
		jobTold = jobTold || e["Event-Name"] == "BACKGROUND_JOB"
		s.applyAndSend(e)
	}

	drivertest.Play(s.ScriptedPlatform, job, events, eventName, send, func() {
		for channel, r := range s.channels {
			if _, of, _ := readTag(r.Tag); of != job {
				continue
			}

			for _, name := range []string{"CHANNEL_HANGUP", "CHANNEL_DESTROY"} {
				s.applyAndSend(capturedEvent{"Event-Name": name, "Unique-ID": channel, "Channel-Presence-Data": r.Tag,
					"Channel-Call-State": "HANGUP", "Hangup-Cause": origination.CauseCancelled})
			}
		}

		if !jobTold {
			s.applyAndSend(capturedEvent{"Event-Name": "BACKGROUND_JOB", "Job-Command": "originate", "Job-UUID": job,
				"_body": "-ERR ORIGINATOR_CANCEL\n"})
		}
	})
}

func eventName(e capturedEvent) string { return e["Event-Name"] }

// applyAndSend applies an event to the table and sends it to the client if it has subscribed to it. s.Mu is
// held.
func (s *scriptedSwitch) applyAndSend(e capturedEvent) {
	if channel := e["Unique-ID"]; channel != "" {
		_, known := s.channels[channel]
		switch name := e["Event-Name"]; {
		case name == "CHANNEL_DESTROY":
			delete(s.channels, channel)
		case known || name == "CHANNEL_CREATE":
			r := channelRow{UUID: channel, Tag: e["Channel-Presence-Data"], State: e["Channel-Call-State"]}
			if r.Tag == "" {
				r.Tag = s.channels[channel].Tag
			}
			s.channels[channel] = r
		}
	}

	if !s.listening[eventName(e)] && !s.listening["ALL"] {
		return
	}

	ours := strings.HasPrefix(e["Channel-Presence-Data"], tagPrefix) || e["Job-Command"] == "originate"
	if s.filters > 0 && !ours {
		return
	}

	s.Send(eventName(e), e.plain())
}
