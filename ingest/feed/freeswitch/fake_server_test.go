package freeswitch

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"trunkline/telephony/eventconn/conntest"
)

const password = "open sesame"

// fakeSwitch answers like mod_event_socket, for one connection after another.
type fakeSwitch struct {
	address string
	// answers are those to api commands; a command without one is not known.
	answers map[string]string
	allowed func(word string) bool // a word of "event json"; nil: all
	play    func(*peer)            // after the subscription; nil: nothing
	// together is the number of api commands with a beginning that are read before the
	// first of them is answered.
	together map[string]int

	mu       sync.Mutex
	commands []string // those that it got
}

// peer is the switch's end of a connection.
type peer struct {
	net.Conn
	*fakeSwitch
	writing sync.Mutex
}

// writef writes to the client.
func (p *peer) writef(format string, args ...any) {
	p.writing.Lock()
	defer p.writing.Unlock()
	fmt.Fprintf(p.Conn, format, args...)
}

// frame is an event as it is on the wire.
func frame(body string) string {
	return fmt.Sprintf("Content-Length: %d\nContent-Type: text/event-json\n\n%s", len(body), body)
}

// events sends events.
func (p *peer) events(bodies ...string) {
	for _, body := range bodies {
		p.writef("%s", frame(body))
	}
}

// serve begins to accept connections.
func (f *fakeSwitch) serve(t testing.TB) *fakeSwitch {
	t.Helper()
	f.address = conntest.Serve(t, f.serveConn)
	return f
}

// serveConn logs the client in and answers its commands until it has gone.
func (f *fakeSwitch) serveConn(nc net.Conn) {
	p := &peer{Conn: nc, fakeSwitch: f}
	in := bufio.NewReader(p.Conn)
	p.writef("Content-Type: auth/request\n\n")
	played := false
	var playing sync.WaitGroup
	defer playing.Wait()

	waiting := make(map[string][]string) // answers, by the beginning of their commands
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}

		f.mu.Lock()
		f.commands = append(f.commands, command)
		f.mu.Unlock()

		verb, rest, _ := strings.Cut(command, " ")
		switch verb {
		case "auth", "userauth":
			if !strings.HasSuffix(rest, password) {
				p.writef("Content-Type: command/reply\nReply-Text: -ERR invalid\n\n")
				return
			}
			p.writef("Content-Type: command/reply\nReply-Text: +OK accepted\n\n")

		case "event":
			words := strings.Fields(rest)[1:]
			if f.allowed != nil && slices.ContainsFunc(words, func(word string) bool { return !f.allowed(word) }) {
				p.writef("Content-Type: command/reply\nReply-Text: -ERR permission denied\n\n")
				continue
			}
			p.writef("Content-Type: command/reply\nReply-Text: +OK event listener enabled json\n\n")

		case "bgapi":
			p.writef("Content-Type: command/reply\nReply-Text: +OK Job-UUID: 9b2f6a51-3c1d-4a53-8a7e-6b1e0c5d9f22\n\n")
		case "api":
			f.mu.Lock()
			answer, known := f.answers[rest]
			f.mu.Unlock()

			if rest == "" || answer == silence {
				continue
			}
			if !known {
				name, _, _ := strings.Cut(rest, " ")
				answer = "-ERR " + name + " Command not found!\n"
			}

			ready := []string{answer}
			for beginning, n := range f.together {
				if strings.HasPrefix(rest, beginning) {
					waiting[beginning] = append(waiting[beginning], answer)
					ready = nil
					if len(waiting[beginning]) == n {
						ready, waiting[beginning] = waiting[beginning], nil
					}
				}
			}

			for _, answer := range ready {
				p.writef("Content-Type: api/response\nContent-Length: %d\n\n%s", len(answer), answer)
			}
		}

		// The first question after the subscription ends the client's start.
		if verb == "api" && f.play != nil && !played {
			played = true
			playing.Go(func() { f.play(p) })
		}
	}
}

// silence is an answer that never comes.
const silence = "\x00"

// bannerServer is a server that writes banner, reads a command and closes the connection.
func bannerServer(t *testing.T, banner string) *fakeSwitch {
	t.Helper()
	return &fakeSwitch{address: conntest.Serve(t, func(nc net.Conn) {
		fmt.Fprint(nc, banner)
		readCommand(bufio.NewReader(nc))
	})}
}

// answers returns the answers of a switch, in files named after the commands.
func answers(t testing.TB, name string) map[string]string {
	t.Helper()
	dir := filepath.Join("testdata", name)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	all := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(file.Name(), ".txt")] = string(text)
	}

	return all
}

// readCommand returns the next line that is not empty.
func readCommand(in *bufio.Reader) (string, error) {
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}

		line = strings.TrimSpace(line)
		if line != "" {
			return line, nil
		}
	}
}

// answer sets the answer to an api command.
func (f *fakeSwitch) answer(command, answer string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[command] = answer
}

// timesReceived returns how often the switch got a command.
func (f *fakeSwitch) timesReceived(command string) (times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.commands {
		if c == command {
			times++
		}
	}
	return times
}
