package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

const switchPassword = "ClueCon of the tests"

// scriptedSwitch is an event socket server. It sends the events of a test, answers API commands
// about one agent, and keeps its address across restarts.
type scriptedSwitch struct {
	address string

	mu         sync.Mutex
	run        string // Core-UUID
	round      int    // makes the ids of runs, calls and events different
	agent      string // the agent's status; "": it has no agents
	listener   net.Listener
	subscribed map[net.Conn]bool // connections that have subscribed
	conns      map[net.Conn]bool
	sent       []string // events
	commands   []string // those that change something
	refusal    string   // the answer to them; "": they are done
	unanswered bool     // they are done and not answered
}

func newScriptedSwitch(t testing.TB) *scriptedSwitch {
	t.Helper()
	s := &scriptedSwitch{address: freeport.Addresses(t, 1)[0], subscribed: map[net.Conn]bool{},
		conns: map[net.Conn]bool{}}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

// start begins a new run of the switch.
func (s *scriptedSwitch) start(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp4", s.address)
	if err != nil {
		t.Fatal(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.round++
	s.run, s.listener = fmt.Sprintf("%08x-d3c3-4d97-9935-831417f7a97d", s.round), l
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}

			s.mu.Lock()
			s.conns[nc] = true
			s.mu.Unlock()

			go s.serveConn(nc)
		}
	}()
}

// stop closes the listener and all connections.
func (s *scriptedSwitch) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener.Close()
	for nc := range s.conns {
		nc.Close()
	}
	clear(s.conns)
	clear(s.subscribed)
}

func (s *scriptedSwitch) setAgent(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent = status
}

func (s *scriptedSwitch) setUnanswered(unanswered bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = unanswered
}

// serveConn logs a client in and answers its commands until it disconnects.
func (s *scriptedSwitch) serveConn(nc net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.subscribed, nc)
		delete(s.conns, nc)
		s.mu.Unlock()
		nc.Close()
	}()

	in := bufio.NewReader(nc)
	say := func(format string, args ...any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		fmt.Fprintf(nc, format, args...)
	}

	say("Content-Type: auth/request\n\n")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}

		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "auth":
			if rest != switchPassword {
				say("Content-Type: command/reply\nReply-Text: -ERR invalid\n\n")
				return
			}
			say("Content-Type: command/reply\nReply-Text: +OK accepted\n\n")
		case "event":
			say("Content-Type: command/reply\nReply-Text: +OK event listener enabled json\n\n")
			s.mu.Lock()
			s.subscribed[nc] = true
			s.mu.Unlock()
		case "bgapi":
			s.mu.Lock()
			s.commands = append(s.commands, rest)
			s.mu.Unlock()
			say("Content-Type: command/reply\nReply-Text: +OK Job-UUID: 1\n\n")
		case "api":
			text := s.answer(rest)
			if text == "" {
				continue
			}
			say("Content-Type: api/response\nContent-Length: %d\n\n%s", len(text), text)
		}
	}
}

// answer returns the response to an api command, "" for none.
func (s *scriptedSwitch) answer(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	if status, ok := strings.CutPrefix(command, "callcenter_config agent set status 1002@127.0.0.20 "); ok {
		s.commands = append(s.commands, command)
		if s.refusal != "" {
			return s.refusal + "\n"
		}

		s.agent = strings.Trim(status, "'")
		if s.unanswered {
			return ""
		}

		return "+OK\n"
	}

	switch verb, _, _ := strings.Cut(command, " "); verb {
	case "uuid_kill", "uuid_transfer":
		s.commands = append(s.commands, command)
		return cmp.Or(s.refusal, "+OK") + "\n"
	case "uuid_audio_stream":
		s.commands = append(s.commands, command)
		return "+OK Success\n"
	case "uuid_exists", "user_exists":
		return "true"
	case "uuid_getvar":
		return "_undef_"
	case "global_getvar":
		return "127.0.0.20"
	}

	switch command {
	case "callcenter_config agent list":
		if s.agent == "" {
			return "+OK\n"
		}
		return "name|contact|status|state\n1002@127.0.0.20|user/1002|" + s.agent + "|Waiting\n+OK\n"
	case "callcenter_config tier list":
		return "queue|agent|state|level|position\nsupport@127.0.0.20|1002@127.0.0.20|Ready|1|1\n+OK\n"
	case "callcenter_config queue list":
		return "name|strategy\nsupport@127.0.0.20|ring-all\n+OK\n"
	case "callcenter_config queue list members support@127.0.0.20":
		return "+OK\n"
	}

	return `{"row_count":0}` + "\n"
}

// subscribedEvent matches the captured events that a feed subscribes to by default.
var subscribedEvent = regexp.MustCompile(
	`"Event-Name":"(CHANNEL_(CREATE|PROGRESS|ANSWER|BRIDGE|UNBRIDGE|HANGUP_COMPLETE|DESTROY)|CUSTOM)"`)

var (
	uuids     = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b`)
	coreUUID  = regexp.MustCompile(`"Core-UUID":"[^"]*"`)
	sequences = regexp.MustCompile(`"Event-Sequence":"([0-9]+)"`)
)

// newSessionEvents returns the events of the captured call center session, with new call ids each time.
func (s *scriptedSwitch) newSessionEvents(t testing.TB) (events []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()

	s.round++
	for _, line := range lines(readFile(t, capturedFiles["callcenter"])) {
		if !subscribedEvent.MatchString(line) {
			continue
		}

		line = uuids.ReplaceAllString(line, fmt.Sprintf("%08x$1", s.round))
		line = coreUUID.ReplaceAllString(line, `"Core-UUID":"`+s.run+`"`)
		events = append(events, sequences.ReplaceAllStringFunc(line, func(text string) string {
			n, _ := strconv.Atoi(sequences.FindStringSubmatch(text)[1])
			return fmt.Sprintf(`"Event-Sequence":"%d"`, n+s.round*10_000)
		}))
	}

	return events
}

// send sends events to all subscribed clients.
func (s *scriptedSwitch) send(events ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range events {
		s.sent = append(s.sent, body)
		for nc := range s.subscribed {
			fmt.Fprintf(nc, "Content-Length: %d\nContent-Type: text/event-json\n\n%s", len(body), body)
		}
	}
}

// agentEvent returns the event that tells the agent's status, which follows a command later than
// its answer.
func (s *scriptedSwitch) agentEvent(t testing.TB) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()

	s.round++
	all := lines(readFile(t, capturedFiles["callcenter"]))
	line := all[slices.IndexFunc(all, func(one string) bool { return strings.Contains(one, `"agent-status-change"`) })]

	for _, member := range []struct{ name, value string }{
		{"Core-UUID", s.run}, {"Event-Date-Timestamp", fmt.Sprint(time.Now().UnixMicro())},
		{"Event-Sequence", fmt.Sprint(s.round * 10_000)}, {"CC-Agent-Status", s.agent},
	} {
		line = regexp.MustCompile(`"`+member.name+`":"[^"]*"`).ReplaceAllString(line,
			`"`+member.name+`":"`+member.value+`"`)
	}

	return line
}

// awaitCommands waits until the switch has got that many commands that change something.
func (s *scriptedSwitch) awaitCommands(t testing.TB, count int) {
	t.Helper()
	eventually(t, "the switch to be asked", func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.commands) != count {
			return fmt.Errorf("it was asked %q", s.commands)
		}
		return nil
	})
}

// sentEvents returns all sent events.
func (s *scriptedSwitch) sentEvents() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.sent...)
}

// lastCommand returns the last command that changes something.
func (s *scriptedSwitch) lastCommand() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands[len(s.commands)-1]
}
