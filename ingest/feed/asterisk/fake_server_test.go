package asterisk

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"trunkline/telephony/eventconn/conntest"
)

// capture returns the output of an Asterisk on one connection, without the banner and the response to
// the login.
func capture(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../telephony/ami/testdata/" + name + ".ami.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, events, _ := bytes.Cut(data, []byte("\r\n\r\n"))
	return string(events)
}

// answer returns the events of a captured answer up to the end of its list, with an action's id.
func answer(t testing.TB, name, id string) string {
	text := capture(t, name)
	text, _, _ = strings.Cut(text, "Response: Goodbye")
	return strings.ReplaceAll(text, "ActionID: a2\r\n", "ActionID: "+id+"\r\n")
}

// pbx is a scripted Asterisk. Its answers are by action, or by action and queue or variable: the text of a response,
// "error: " and a message, or silence.
type pbx struct {
	t       testing.TB
	address string
	answers map[string]string // in place of the captured ones
	events  string            // written after the subscription, in pieces
	piece   int               // bytes of a piece, 0: all at once
	end     bool              // close after the events

	mu              sync.Mutex
	actionNames     []string // those that it got, with the filter or mask
	receivedActions []string // the same, with all their fields
}

// silence is the answer that does not come.
const silence = "silence"

func (p *pbx) start() { p.address = conntest.Serve(p.t, p.play) }

// errorAnswer has places for the ActionID and the message.
var errorAnswer = "Response: Error\r\nActionID: %s\r\nMessage: %s\r\n\r\n"

// play answers the actions of one connection.
func (p *pbx) play(nc net.Conn) {
	io.WriteString(nc, "Asterisk Call Manager/13.0.0\r\n")
	for in := bufio.NewScanner(nc); ; {
		lines, fields := map[string]string{}, ""
		for in.Scan() && in.Text() != "" {
			key, value, _ := strings.Cut(in.Text(), ": ")
			lines[key] = value
			if key != "ActionID" {
				fields += "|" + in.Text()
			}
		}

		action, id := lines["Action"], lines["ActionID"]
		if action == "" {
			return
		}

		p.mu.Lock()
		p.actionNames = append(p.actionNames, fmt.Sprint(action, " ", lines["Filter"], lines["EventMask"]))
		p.receivedActions = append(p.receivedActions, strings.TrimPrefix(fields, "|"))
		p.mu.Unlock()

		text, ok := p.answers[action]
		if one, found := p.answers[action+" "+cmp.Or(lines["Queue"], lines["Variable"])]; found {
			text, ok = one, true
		}

		switch {
		case text == silence:
		case ok && strings.HasPrefix(text, "error: "):
			fmt.Fprintf(nc, errorAnswer, id, strings.TrimPrefix(text, "error: "))
		case ok:
			io.WriteString(nc, strings.ReplaceAll(text, "ActionID: a2\r\n", "ActionID: "+id+"\r\n"))
		case action == "CoreStatus":
			fmt.Fprintf(nc, "Response: Success\r\nActionID: %s\r\nCoreStartupDate: 2026-11-22\r\nCoreStartupTime: 12:05:19\r\n\r\n",
				id)
		case action == "GetConfig":
			fmt.Fprintf(nc, "Response: Success\r\nActionID: %s\r\nCategory-000000: feed\r\nLine-000000-000000: read=all\r\n\r\n",
				id)
		case action == "QueueStatus", action == "CoreShowChannels", action == "DeviceStateList":
			io.WriteString(nc, answer(p.t, "answer-"+action, id))
		case action == "Agents", action == "PJSIPShowContacts", action == "ParkedCalls":
			fmt.Fprintf(nc, errorAnswer, id, "Invalid/unknown command: "+action)
		default:
			fmt.Fprintf(nc, "Response: Success\r\nActionID: %s\r\n\r\n", id)
		}

		if action == "Events" {
			piece := p.piece
			if piece == 0 {
				piece = len(p.events) + 1
			}

			for rest := p.events; rest != ""; rest = rest[min(piece, len(rest)):] {
				io.WriteString(nc, rest[:min(piece, len(rest))])
			}

			if p.end {
				return
			}
		}
	}
}
