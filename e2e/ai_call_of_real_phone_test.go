package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAIProviderWithARealPhone calls `trunkline ai echo` from a phone from Debian, which must
// receive its own audio, and presses keys; then the same by click to call.
func TestAIProviderWithARealPhone(t *testing.T) {
	t.Parallel()
	if !inNetworkNamespace(t) {
		return
	}

	echo := startForeign(t, nil, program(t), "ai", "echo", "--listen", "127.0.0.1:9555")
	echo.await(t, "to listen", func(out, _ []string) bool { return len(out) > 0 })
	n := newNode(t, "ai", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS": "127.0.0.0/8",
	})
	n.start(t)
	registered := n.registrations(t)
	states := n.subscribe(t,
		subscription{paths: apiPaths, token: n.login(t, apiPaths, user("bob").types("AGENT_CUSTOM_EVENT"))})
	id := n.createProvider(t, "g711_ulaw", 8000, "ws://127.0.0.1:9555/")
	alice := n.newPhone(t, "alice", "1001", 5071, 440)
	registered(1)

	printed := func(part string) func(out, _ []string) bool {
		return func(out, _ []string) bool {
			return slices.ContainsFunc(out, func(line string) bool { return strings.Contains(line, part) })
		}
	}

	alice.command(t, "dial", "sip:ai-"+id+"@127.0.0.1")
	echo.await(t, "to report alice's call", printed("1001"))
	time.Sleep(4 * time.Second) // of audio

	for _, key := range []string{"5", "#"} {
		alice.press(t, key)
		echo.await(t, "to report the key "+key, printed(key))
	}

	alice.command(t, "hangup", "")
	echo.await(t, "to report the hangup", printed("NORMAL_CLEARING"))
	if got := alice.loudestFrequency(t); got < alice.hertz*9/10 || got > alice.hertz*11/10 {
		t.Errorf("the phone that plays %d Hz received %d Hz", alice.hertz, got)
	}

	awaitSessions(t, states, 2)

	d := n.dialler(t, "alice")
	call := d.dial(t, "ai-"+id)
	d.await(t, call, "bridged")
	awaitSessions(t, states, 3)

	if a := d.mustCall(t, http.MethodDelete, "/api/v2/calls/"+call, d.header, ""); a.status != http.StatusAccepted {
		t.Errorf("cancelling: %v", a)
	}

	d.await(t, call, "ended")
	awaitSessions(t, states, 4)
	row, _ := d.findRecord(t, call, 3)
	if row.To != "ai-"+id {
		t.Errorf("the record: %+v", row)
	}
}

// awaitSessions waits for a number of AI session events on the channel, not counting those of
// checks.
func awaitSessions(t *testing.T, s *subscriber, steps int) {
	t.Helper()
	s.await(t, fmt.Sprintf("%d steps of sessions", steps), func(all []event) bool {
		n := 0
		for _, e := range all {
			var data struct {
				Event string `json:"event"`
				Way   string `json:"way"`
			}
			if json.Unmarshal(e.Data, &data) == nil && data.Event == "ai.session" && data.Way != "test" {
				n++
			}
		}

		return n >= steps
	})
}
